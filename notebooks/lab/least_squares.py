"""Robust least squares with bounds, by Levenberg and Marquardt: the solver of all fits.

It is our own and not scipy's, so that a fit repeats what configs/ holds to the last digit.
"""
import numpy

# By loss, of u = (residual / scale)^2: what a residual counts, over scale^2, and its weight.
LOSSES = {"soft_l1": (lambda u: 2 * (numpy.sqrt(1 + u) - 1), lambda u: 1 / numpy.sqrt(1 + u)),
          "cauchy": (lambda u: numpy.log(1 + u), lambda u: 1 / (1 + u)),
          "squares": (lambda u: u, numpy.ones_like)}
MOST_DAMPING = 1e8


def from_logs(logs, least, most):
    """exp(logs) within [least, most]: exp(log(x)) is x or, by processor, a rounding beyond it."""
    return numpy.clip(numpy.exp(logs), least, most)


def fit_least_squares(residuals, start, low, high, *, loss="soft_l1", scale=0.05, step=0.0,
                      iterations=60, least_gain=1e-5, progress=lambda step, residuals: None):
    """(parameters, mean loss, iterations) of the least loss within [low, high].

    residuals: of a vector of parameters. step: of forward differences; 0: 1e-3 of a parameter, 1e-6
    of its range at least. least_gain: relative; a step that gains less is the last. progress: called
    at the start (step 0) and after each step. Raises ValueError where a residual is not finite at
    the start or beside a point that was reached."""
    cost, weight = LOSSES[loss]

    def loss_of(r):
        return numpy.mean(scale ** 2 * cost((r / scale) ** 2)) if len(r) else 0.0

    def finite(at):
        r = residuals(at)
        if not numpy.isfinite(r).all():
            raise ValueError(f"a fit's residual {numpy.flatnonzero(~numpy.isfinite(r))[0] + 1} of "
                             f"{len(r)} is not finite; expected measurements and predictions "
                             "above 0")
        return r

    def derivatives(at, r):
        columns = []
        for i, value in enumerate(at):
            size = step if step > 0 else max(1e-3 * abs(value), 1e-6 * (high[i] - low[i]))
            size = -size if value + size > high[i] else size
            moved = at.copy()
            moved[i] += size
            columns.append((finite(moved) - r) / size)
        return numpy.stack(columns, axis=1)

    at = numpy.clip(start, low, high)
    r, damping, done = finite(at), 1e-2, 0
    now = loss_of(r)
    progress(0, r)
    while done < iterations and damping < MOST_DAMPING:
        done += 1
        j, w, before = derivatives(at, r), weight((r / scale) ** 2), now
        normal, gradient = j.T @ (w[:, None] * j), j.T @ (w * r)
        diagonal = numpy.diag(normal)
        while damping < MOST_DAMPING:
            damped = normal + numpy.diag(damping * diagonal + 1e-12 * max(1.0, diagonal.max()))
            tried = numpy.clip(at - numpy.linalg.solve(damped, gradient), low, high)
            r_tried = residuals(tried)
            if loss_of(r_tried) < now:
                at, r, now = tried, r_tried, loss_of(r_tried)
                damping = max(damping / 5, 1e-9)
                break
            damping *= 4
        progress(done, r)
        if before - now < least_gain * before:
            break
    return at, now, done
