"""The methods of the experiments: how each is made, and how it looks in tables and figures.

A method of your own gets a line here, and a line in `drawing.style.LOOKS` if it has a new look.
"""

import pogp
from pogp.evaluation.methods import METHODS as SHARED
from pogp.evaluation.methods import Method, capped, graded, pog, seeded

__all__ = ["METHODS", "Method"]

_ABSORBING = SHARED["absorbing"].make

METHODS = {
    "dense": SHARED["dense"],
    "spgp": Method("SPGP", seeded(pogp.SPGP), "spgp", offline=True, own_tuning=True),
    "vfe": Method("VFE", seeded(pogp.VFE), "vfe", offline=True, own_tuning=True),
    "pog-published": Method("POG as published", pog(max_removals=1, max_size=None), "pog"),
    "pog-written": Method("POG as written", pog(max_size=None), "pog-written"),
    "pog-everywhere": Method("POG everywhere", pog(view="everywhere", budget=None), "everywhere"),
    "sogp": Method("SOGP", capped(pogp.SOGP), "sogp"),
    "streaming-vfe": Method("streaming VFE", seeded(pogp.StreamingVFE), "streaming", batch=100),
    "random": SHARED["random"],
    "window": Method("sliding window", capped(pogp.SlidingWindow), "window"),
    "absorbing": Method("absorbing POG", _ABSORBING, "absorbing"),
    "absorbing-calibrated": Method(
        "absorbing POG, calibrated",
        capped(pogp.AbsorbingPOG, budget=None, calibrate=True),
        "absorbing",
    ),
    "absorbing-rehearsed": Method(
        "absorbing POG, rehearsed", _ABSORBING, "absorbing", rehearsed=True
    ),
    "absorbing-eighth": Method("absorbing POG, an eighth", _ABSORBING, "absorbing"),
    "mcintire": Method("McIntire et al.", graded(pogp.McIntire, "threshold"), "mcintire"),
    "krls-ald": Method("KRLS (ALD)", graded(pogp.KRLSALD, "tolerance"), "krls-ald"),
    "krls-t": Method("KRLS tracker", capped(pogp.KRLST, forgetting=1.0), "krls-t"),
}
