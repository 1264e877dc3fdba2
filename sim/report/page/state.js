// What the reader chose. It stands in the address after "#", by names, so that a link or a reload
// shows the same; what is at its default is left out.

const state = {
  sweep: 0, filler: 0, choices: [], hidden: new Set(), trade: 0, axis: -1, metric: -1,
  sort: { points: null, comparisons: null, failures: null, counters: null },
  all: false, point: null,
};

/** Sections that draw themselves anew when the choice changes. */
const views = [];

const sweepPoints = (sweep) => points.filter((point) => point.sweep === sweep);
const fillersOf = (sweep) => [...new Set(sweepPoints(sweep).map((point) => point.filler))];

/** Points of the sweep and filler, whatever is chosen on axes and policies. */
const candidates = () =>
  points.filter((point) => point.sweep === state.sweep && point.filler === state.filler);

function isChosen(values) {
  const { axes } = sweeps[state.sweep];
  return state.choices.every((choice, place) =>
    choice < 0 || (values[place] >= 0 && axes[place].choiceOf[values[place]] === choice));
}

let shownPoints = [];
function choosePoints() {
  shownPoints = candidates().filter(
    (point) => !state.hidden.has(point.policy) && isChosen(point.values));
}

const tradesOf = () => data.trades.map((trade, place) => ({ ...trade, place }))
  .filter((trade) => candidates().some(
    (point) => figure(point, trade.x) !== null && figure(point, trade.y) !== null));

const numericAxes = () => sweeps[state.sweep].axes.map((axis, place) => ({ ...axis, place }))
  .filter((axis) => axis.numbers.length > 1);

/** Metrics that some point of the sweep and filler has. */
const measured = () => metrics.map((metric, place) => ({ ...metric, place }))
  .filter((metric) => candidates().some((point) => point.figures[metric.place] !== null));

/** The axis that is most like a load: a rate of arrivals, a load, else the first of numbers. */
function defaultAxis() {
  const axes = numericAxes();
  const load = axes.find((axis) => /(rate_per_s|load)$/.test(axis.pointer));
  return axes.length === 0 ? -1 : (load || axes[0]).place;
}

function defaultMetric() {
  const places = measured().map((metric) => metric.place);
  const wanted = ['latency_p95_ms', 'filler_requests_per_s', 'training_normalised_fraction'];
  const found = wanted.map((name) => metricPlace.get(name)).find((at) => places.includes(at));
  return found === undefined ? (places.length > 0 ? places[0] : -1) : found;
}

/** Choices that do not fit the sweep go back to their defaults. */
function settle() {
  nameFor(state.sweep);
  const fillers = fillersOf(state.sweep);
  if (!fillers.includes(state.filler)) state.filler = fillers.length > 0 ? fillers[0] : 0;
  const { axes } = sweeps[state.sweep] || { axes: [] };
  if (state.choices.length !== axes.length) state.choices = axes.map(() => -1);
  const trades = tradesOf().map((trade) => trade.place);
  if (!trades.includes(state.trade)) state.trade = trades.length > 0 ? trades[0] : 0;
  if (!numericAxes().some((axis) => axis.place === state.axis)) state.axis = defaultAxis();
  if (!measured().some((metric) => metric.place === state.metric)) state.metric = defaultMetric();
  if (state.point !== null && points[state.point] === undefined) state.point = null;
}

function hashOf() {
  const query = new URLSearchParams();
  const sweep = sweeps[state.sweep];
  if (state.sweep !== 0) query.set('sweep', sweep.name);
  if (state.filler !== fillersOf(state.sweep)[0]) query.set('filler', data.fillers[state.filler]);
  state.choices.forEach((choice, place) => {
    if (choice >= 0) query.set(sweep.axes[place].pointer, sweep.axes[place].choices[choice]);
  });
  for (const policy of state.hidden) query.append('hide', policies[policy].plain);
  const trades = tradesOf();
  if (trades.length > 0 && state.trade !== trades[0].place) query.set('trade', state.trade);
  if (state.axis !== defaultAxis()) query.set('axis', sweep.axes[state.axis].pointer);
  if (state.metric !== defaultMetric()) query.set('metric', metrics[state.metric].column);
  for (const [table, sort] of Object.entries(state.sort)) {
    if (sort !== null) query.set(`sort.${table}`, `${sort.column}:${sort.down ? 'down' : 'up'}`);
  }
  if (state.all) query.set('figures', 'all');
  if (state.point !== null) {
    const point = points[state.point];
    query.set('point', `${runs[point.runs[0]].key}:${point.policy}`);
  }
  return query.toString();
}

function readHash() {
  const query = new URLSearchParams(location.hash.slice(1));
  const place = (list, name, otherwise) =>
    (list.indexOf(name) < 0 ? otherwise : list.indexOf(name));
  state.sweep = place(sweeps.map((sweep) => sweep.name), query.get('sweep'), 0);
  nameFor(state.sweep);
  state.filler = place(data.fillers, query.get('filler'), fillersOf(state.sweep)[0]);
  const { axes } = sweeps[state.sweep] || { axes: [] };
  state.choices = axes.map((axis) => place(axis.choices, query.get(axis.pointer), -1));
  state.hidden = new Set(query.getAll('hide')
    .map((name) => place(policies.map((policy) => policy.plain), name, -1))
    .filter((policy) => policy >= 0));
  state.trade = query.has('trade') ? Number(query.get('trade')) : -1;
  state.axis = place(axes.map((axis) => axis.pointer), query.get('axis'), -1);
  state.metric = place(metrics.map((metric) => metric.column), query.get('metric'), -1);
  for (const table of Object.keys(state.sort)) {
    const [column, way] = (query.get(`sort.${table}`) || '').split(/:(?=[^:]*$)/);
    state.sort[table] = column ? { column, down: way === 'down' } : null;
  }
  state.all = query.get('figures') === 'all';
  const [key, policy] = (query.get('point') || '').split(':');
  const point = points.find((one) => one.policy === Number(policy) &&
    one.filler === state.filler && one.runs.some((run) => runs[run].key === key));
  state.point = point ? point.id : null;
  settle();
}

let written = null;
function writeHash() {
  written = hashOf();
  if (location.hash.slice(1) === written) return;
  const address = written === '' ? location.href.split('#')[0] : `#${written}`;
  try {
    history.replaceState(null, '', address);
  } catch (refused) {
    location.hash = written;
  }
}

/** After a choice: settles, writes the address, draws. */
function changed() {
  settle();
  choosePoints();
  writeHash();
  for (const view of views) view();
}

function choosePoint(id, focus) {
  state.point = id;
  writeHash();
  drawDetail();
  markChosen();
  if (id !== null) say(`Chosen: ${pointName(points[id])}.`);
  if (focus && id !== null) byId('detail').focus({ preventScroll: true });
}
