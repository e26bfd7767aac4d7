"""Speech: features, x-vectors, back ends, pseudo-speakers, synthesis, anonymisers, recognisers."""

import utils as utils  # it says what to do where packages are missing
