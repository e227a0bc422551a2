"""The race: successive halving of finalists on validation pixels."""

from hytas.race.events import RaceListener, RaceProgress, RungEnd, RungRow
from hytas.race.finalists import diverse
from hytas.race.plan import RacePlan, choose_finalists, plan
from hytas.race.race import race
from hytas.race.rankings import DEFAULT_RANKING, RANKINGS, find_ranking
from hytas.race.results import Racer, RungResult, results_by_racer, rung_results
from hytas.race.rungs import LEAST_FINALISTS, PREFERENCES, REDUCTION_FACTOR, Rung, plan_rungs
from hytas.race.scores import best_first, joined_late, race_scores
from hytas.race.size_classes import (
    SizeRow,
    size_classes,
    size_of,
    size_rows,
    smaller_finalists,
    smallest_as_good,
)
from hytas.race.task import ENOUGH_PIXELS, MANY_PIXELS, RaceTask
from hytas.race.training import CandidateTrainer

__all__ = [
    "DEFAULT_RANKING",
    "ENOUGH_PIXELS",
    "LEAST_FINALISTS",
    "MANY_PIXELS",
    "PREFERENCES",
    "RANKINGS",
    "REDUCTION_FACTOR",
    "CandidateTrainer",
    "RaceListener",
    "RacePlan",
    "RaceProgress",
    "RaceTask",
    "Racer",
    "Rung",
    "RungEnd",
    "RungResult",
    "RungRow",
    "SizeRow",
    "best_first",
    "choose_finalists",
    "diverse",
    "find_ranking",
    "joined_late",
    "plan",
    "plan_rungs",
    "race",
    "race_scores",
    "results_by_racer",
    "rung_results",
    "size_classes",
    "size_of",
    "size_rows",
    "smaller_finalists",
    "smallest_as_good",
]
