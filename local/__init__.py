"""Assessment: protocols, attackers, metrics, reports. Knows no corpus."""

import utils as utils  # it finds the project's environment before packages are imported
