"""One name for each type of array; docstrings give the shapes."""

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]
Int16 = npt.NDArray[np.int16]
Bool = npt.NDArray[np.bool_]
Intp = npt.NDArray[np.intp]
