"""The one exception that stands for bad input."""


class InputError(ValueError):
    """Bad input from the user; its one-line message names the argument, its value and the rule.

    The command line prints it as `error: <message>` and exits with status 2, without a traceback.
    """
