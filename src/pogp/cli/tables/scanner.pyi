from pogp.arrays import Array, Indices

def scan(
    data: bytes, delimiter: str, slots: Indices, wanted: int
) -> tuple[Array, Indices] | None: ...
