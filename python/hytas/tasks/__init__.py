"""What is predicted, as a value of its own: how it is learned, read out, measured and compared.

No other package asks which task it has. Another task is one file here, and one name
in `TASKS`.
"""

from hytas.tasks.classes import Classes
from hytas.tasks.protocol import PredictionTask
from hytas.tasks.table import task_of, task_of_card
from hytas.tasks.values import Values

__all__ = ["Classes", "PredictionTask", "Values", "task_of", "task_of_card"]
