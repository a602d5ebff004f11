"""When two removals are equally cheap, so that the oldest point goes.

Two mathematically equal costs (a repeated input, say) differ by rounding, and differ otherwise in
the two implementations of the loop. These widths are well above rounding and below anything that
matters.
"""

TIE = 1e-9
"""Costs this close, relatively, are equal."""
TIE_FLOOR = 1e-26
"""Costs below this (a Hellinger distance of 1e-13) are rounding, and equal to zero."""
