from pogp.online.mixing import calibrate as calibrate
from pogp.online.mixing import combine as combine
from pogp.online.mixing import correct as correct
from pogp.online.mixing import densities as densities
from pogp.online.mixing import discount as discount
from pogp.online.mixing import follow as follow
from pogp.online.mixing import least_squares as least_squares
from pogp.online.mixing import take as take
