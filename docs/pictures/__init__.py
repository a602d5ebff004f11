"""The pictures of the documentation, drawn by docs/draw.py."""
