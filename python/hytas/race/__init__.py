"""The race: successive halving of finalists on validation pixels."""

from hytas.race.events import RaceProgress, RungEnd, RungRow
from hytas.race.finalists import diverse
from hytas.race.race import race
from hytas.race.racers import Racer
from hytas.race.rankings import RANKINGS, USUAL_RANKING, usual_ranking
from hytas.race.results import RungResult, rung_results
from hytas.race.rungs import LEAST_FINALISTS, REDUCTION_FACTOR, Rung, plan_rungs
from hytas.race.standings import Placing, best_first, placings, standing
from hytas.race.task import ENOUGH_PIXELS, RaceTask

__all__ = [
    "ENOUGH_PIXELS",
    "LEAST_FINALISTS",
    "RANKINGS",
    "REDUCTION_FACTOR",
    "USUAL_RANKING",
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
    "placings",
    "plan_rungs",
    "race",
    "rung_results",
    "standing",
    "usual_ranking",
]
