"""The race: successive halving of finalists on validation pixels."""

from hytas.race.events import RaceProgress, RungEnd, RungRow
from hytas.race.finalists import diverse
from hytas.race.ladder import (
    PREFERENCES,
    LadderRow,
    ladder_rows,
    size_classes,
    size_of,
    smaller_ones,
)
from hytas.race.race import race
from hytas.race.racers import Racer
from hytas.race.rankings import RANKINGS, USUAL_RANKING, find_ranking, usual_ranking
from hytas.race.results import RungResult, results_by_racer, rung_results
from hytas.race.rungs import LEAST_FINALISTS, REDUCTION_FACTOR, Rung, plan_rungs
from hytas.race.standings import Placing, best_first, placings, standing
from hytas.race.task import ENOUGH_PIXELS, MANY_PIXELS, RaceTask

__all__ = [
    "ENOUGH_PIXELS",
    "LEAST_FINALISTS",
    "MANY_PIXELS",
    "PREFERENCES",
    "RANKINGS",
    "REDUCTION_FACTOR",
    "USUAL_RANKING",
    "LadderRow",
    "Placing",
    "RaceProgress",
    "RaceTask",
    "Racer",
    "Rung",
    "RungEnd",
    "RungResult",
    "RungRow",
    "best_first",
    "diverse",
    "find_ranking",
    "ladder_rows",
    "placings",
    "plan_rungs",
    "race",
    "results_by_racer",
    "rung_results",
    "size_classes",
    "size_of",
    "smaller_ones",
    "standing",
    "usual_ranking",
]
