from pogp._core.mixing_reference import calibrate as calibrate
from pogp._core.mixing_reference import combine as combine
from pogp._core.mixing_reference import correct as correct
from pogp._core.mixing_reference import densities as densities
from pogp._core.mixing_reference import discount as discount
from pogp._core.mixing_reference import follow as follow
from pogp._core.mixing_reference import least_squares as least_squares
from pogp._core.mixing_reference import take as take
