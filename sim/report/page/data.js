// The report's data, as sim/report/report_page.cpp wrote them.

const data = JSON.parse(byId('data').textContent);
const metrics = data.metrics;
const sweeps = data.sweeps;
const metricPlace = new Map(metrics.map((metric, place) => [metric.column, place]));

const policies = data.policies.map(([name, parameters, oracle], id) =>
  ({ id, label: name, plain: name, name, parameters, oracle }));

/** Policies are called by what tells them apart in the sweep that is shown. */
function nameFor(sweep) {
  for (const policy of policies) policy.plain = policy.name;
  for (const [id, label] of sweeps[sweep].labels) policies[id].plain = label;
  for (const policy of policies) {
    policy.label = policy.plain + (policy.oracle ? ' (oracle)' : '');
  }
}

const runs = data.runs.map((run) => ({
  key: run[0], sweep: run[1], index: run[2], seed: run[3], host: data.hosts[run[4]],
  version: data.versions[run[5]], device: data.devices[run[6]], finished: run[7], cpu: run[8],
  patch: run[9], counters: run[10],
}));

const points = data.points.map((point, id) => ({
  id, sweep: point[0], policy: point[1], filler: point[2], values: point[3], runs: point[4],
  figures: point[5], byRun: point[6], losses: point[7],
}));

/** A policy as tables name it, with the mark of figures whose inputs have lost something. */
const marked = (name, losses) => name + (losses.length > 0 ? ' !' : '');
const rowName = (point) => marked(policies[point.policy].label, point.losses);

/** What the marks of these rows mean. */
function lossNote(rows) {
  const all = new Set(rows.flatMap((row) => row.losses));
  return all.size === 0 ? '' : ` ! marks figures of inputs that have lost something: ${
    [...all].join('; ')} (Table 4).`;
}

/** In the unit in which the metric is shown. */
function shown(metric, value) {
  if (value === null || value === undefined) return null;
  if (metric.form === 'percent') return value * 100;
  return metric.form === 'bytes' ? value / 1e9 : value;
}

/** A point's figure: mean, half (of its interval), seeds, bound (or worse: the filler falls behind,
    so that a latency says how long the run was); null if it has none. */
function figure(point, place) {
  const value = point.figures[place];
  if (value === null) return null;
  const metric = metrics[place];
  if (typeof value === 'number') {
    return { mean: shown(metric, value), half: null, seeds: 1, bound: false,
      overloaded: false };
  }
  return {
    mean: shown(metric, value[0]), half: shown(metric, value[1]), seeds: value[2],
    bound: value[3] + value[4] > 0, overloaded: value[4] > 0,
  };
}

function figureText(value) {
  if (value === null) return '';
  if (value.overloaded) return 'overloaded';
  const [mean, half] = intervalTexts(value.mean, value.half);
  return (value.bound ? '>' : '') + mean + (half === '' ? '' : ` \u00b1 ${half}`);
}

const metricTitle = (metric) => metric.title + (metric.unit ? `, ${metric.unit}` : '');

/** "rate per s 200, schedule gpipe"; of the axes that are named, all if none are. */
function settingsText(point, axes) {
  const sweep = sweeps[point.sweep];
  const all = axes || sweep.axes.map((_, place) => place);
  return all.filter((place) => point.values[place] >= 0)
    .map((place) => {
      const axis = sweep.axes[place];
      return `${axisName(axis.pointer)} ${valueText(axis, point.values[place])}`;
    }).join(', ');
}

/** A value of an axis, numbers with five digits. */
function valueText(axis, place) {
  const text = axis.values[place];
  const number = Number(text);
  return axis.numbers.length > 0 && axis.unit === '' && Number.isFinite(number)
    ? String(Number(number.toPrecision(5))) : text;
}

/** A step of a pointer after RFC 6901. */
const unescaped = (step) => step.replaceAll('~1', '/').replaceAll('~0', '~');

/** Applies changes after RFC 6902 (add, remove, replace) to a copy. */
function patched(base, patch) {
  let config = structuredClone(base);
  for (const { op, path, value } of patch) {
    if (path === '') {
      config = value;
      continue;
    }
    const steps = path.split('/').slice(1).map(unescaped);
    const last = steps.pop();
    const parent = steps.reduce((node, step) => node[step], config);
    if (Array.isArray(parent)) {
      const at = last === '-' ? parent.length : Number(last);
      if (op === 'add') parent.splice(at, 0, value);
      else if (op === 'remove') parent.splice(at, 1);
      else parent[at] = value;
    } else if (op === 'remove') {
      delete parent[last];
    } else {
      Object.defineProperty(parent, last,
        { value, enumerable: true, configurable: true, writable: true });
    }
  }
  return config;
}
