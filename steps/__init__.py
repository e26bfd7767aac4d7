"""Speech: features, x-vectors, back ends, pseudo-speakers, synthesis, anonymisers, recognisers."""

import utils as utils  # it finds the project's environment before packages are imported
