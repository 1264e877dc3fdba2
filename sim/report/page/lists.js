// The tables: points, comparisons, failed runs, counters, provenance.

const kMainFigures = ['training_normalised_fraction', 'filler_requests_per_s', 'latency_p95_ms',
  'latency_p99_ms', 'bubble_recovered_fraction', 'jobs_mean_completion_s'];

function policyButton(point) {
  return h('button', { type: 'button', class: 'row', on: { click: (event) => {
    openedFrom = event.currentTarget;
    choosePoint(point.id, true);
  } } }, swatch(point.policy), rowName(point));
}

function pointColumns() {
  const sweep = sweeps[state.sweep];
  const columns = [{ id: 'policy', title: 'policy', cell: policyButton,
    value: rowName }];
  varied().forEach((place) => {
    const axis = sweep.axes[place];
    const numbers = axis.numbers.length > 0;
    columns.push({ id: axis.pointer, title: axisName(axis.pointer), number: numbers,
      value: (point) => (point.values[place] < 0 ? null
        : numbers ? axis.numbers[point.values[place]] : axis.values[point.values[place]]),
      text: (point) => (point.values[place] < 0 ? '' : valueText(axis, point.values[place])) });
  });
  measured().filter((metric) => state.all || kMainFigures.includes(metric.column))
    .forEach((metric) => columns.push({ id: metric.column, title: metric.title,
      unit: metric.unit, number: true,
      value: (point) => {
        const value = figure(point, metric.place);
        return value === null ? null : value.mean;
      },
      cell: (point) => {
        const value = figure(point, metric.place);
        if (value === null || value.overloaded) return figureText(value);
        const [mean, half] = intervalTexts(value.mean, value.half);
        return [(value.bound ? '>' : '') + mean,
          half === '' ? '' : h('span', { class: 'half' }, ` \u00b1 ${half}`)];
      } }));
  columns.push({ id: 'seeds', title: 'seeds', number: true,
    value: (point) => point.runs.length, text: (point) => String(point.runs.length) });
  return columns;
}

function pointsView() {
  const section = byId('points');
  const controls = h('div', { class: 'controls' });
  const table = h('div', null);
  const note = h('p', { class: 'note' });
  fill(section, h('h2', { id: 'points-title' }, 'Table 1. Every point'), note, controls, table);
  const box = h('input', { type: 'checkbox', on: { change: () => {
    state.all = box.checked;
    writeHash();
    draw();
  } } });
  fill(controls, h('label', null, box, ' all figures'));
  const draw = () => {
    box.checked = state.all;
    note.textContent = `${plural(shownPoints.length, 'point')} of ${
      fixed(candidates().length, 0)}. Means over seeds \u00b1 half of the ${
      numberText(data.confidence * 100)} % interval of the mean (Student\u2019s t), where there ` +
      'are several; > marks a lower bound, overloaded a filler that falls ' +
      'behind. Columns sort; a policy\u2019s name shows its runs.' + lossNote(shownPoints);
    fill(table, ...tableOf(pointColumns(), shownPoints, {
      label: 'Points: policies at settings', sort: state.sort.points,
      onSort: sorting('points', draw, table), point: (point) => point.id,
      chosen: (point) => point.id === state.point }));
  };
  return draw;
}

/** Comparisons over all points, or of each chosen point where the axes are chosen on. */
function comparisonRows() {
  const chosen = state.choices.some((choice) => choice >= 0);
  const hidden = new Set([...state.hidden].map((policy) => policies[policy].plain));
  return sweeps[state.sweep].comparisons.map((row) => ({
    metric: metrics[metricPlace.get(row[0])], filler: row[1], policy: row[2], values: row[3],
    pairs: row[4], mean: row[5], base: row[6], difference: row[7], half: row[8], unpaired: row[9],
    bounds: row[10], overloaded: row[11] > 0, losses: row[12],
  })).filter((row) => (row.filler === '' || row.filler === data.fillers[state.filler]) &&
    !hidden.has(row.policy) && row.pairs > 0 &&
    (chosen ? row.values.length > 0 && isChosenForComparison(row.values)
      : row.values.length === 0));
}

/** Parameters of policies are no part of a comparison's point. */
function isChosenForComparison(values) {
  const { axes: all } = sweeps[state.sweep];
  return state.choices.every((choice, place) => choice < 0 ||
    all[place].pointer.startsWith('/policies') ||
    (values[place] >= 0 && all[place].choiceOf[values[place]] === choice));
}

function comparisonColumns() {
  const sweep = sweeps[state.sweep];
  const number = (row, value) =>
    (row.overloaded ? 'overloaded' : numberText(shown(row.metric, value)));
  const place = (row) => settingsText({ sweep: state.sweep, values: row.values });
  const columns = [
    { id: 'policy', title: 'policy', value: (row) => row.policy,
      text: (row) => marked(row.policy, row.losses) },
    { id: 'figure', title: 'figure', value: (row) => row.metric.title,
      text: (row) => metricTitle(row.metric) }];
  if (state.choices.some((choice) => choice >= 0)) {
    columns.push({ id: 'settings', title: 'settings', value: place, text: place });
  }
  columns.push(
    { id: 'mean', title: 'mean', number: true, value: (row) => shown(row.metric, row.mean),
      text: (row) => number(row, row.mean) },
    { id: 'base', title: `of ${sweep.baseline}`, number: true,
      value: (row) => shown(row.metric, row.base), text: (row) => number(row, row.base) },
    { id: 'difference', title: 'mean difference', number: true,
      value: (row) => shown(row.metric, row.difference),
      text: (row) => {
        if (row.overloaded) return 'overloaded';
        const [mean, half] = intervalTexts(shown(row.metric, row.difference),
          shown(row.metric, row.half));
        return (row.difference > 0 ? '+' : '') + mean + (half === '' ? '' : ` \u00b1 ${half}`);
      } },
    { id: 'differs', title: 'differs', value: (row) => differs(row), text: differs },
    { id: 'pairs', title: 'pairs', number: true, value: (row) => row.pairs,
      text: (row) => String(row.pairs) });
  return columns;
}

const differs = (row) => (row.half === null || row.overloaded ? ''
  : Math.abs(row.difference) > row.half ? 'yes' : 'no');

function comparisonsView() {
  const section = byId('comparisons');
  const title = h('h2', { id: 'comparisons-title' });
  const note = h('p', { class: 'note' });
  const table = h('div', null);
  fill(section, title, note, table);
  const draw = () => {
    const sweep = sweeps[state.sweep];
    const rows = comparisonRows();
    section.hidden = sweep.comparisons.length === 0;
    title.textContent = `Table 2. Policies against ${sweep.baseline}`;
    const left = sweep.comparisonsLeftOut > 0 && rows.length === 0
      ? ` ${fixed(sweep.comparisonsLeftOut, 0)} comparisons point by point are left out; ` +
        'bubblesim results compare --by-point prints them.' : '';
    note.textContent = 'Runs are paired by settings and seed, so both had the same arrivals; the ' +
      `interval is the ${numberText(data.confidence * 100)} % one of the mean paired difference.` +
      left + lossNote(rows);
    fill(table, ...tableOf(comparisonColumns(), rows, { label:
      `Comparisons with ${sweep.baseline}`, sort: state.sort.comparisons,
    onSort: sorting('comparisons', draw, table) }));
  };
  return draw;
}

function failuresView() {
  const section = byId('failures');
  const table = h('div', null);
  const total = sweeps.reduce((sum, sweep) => sum + sweep.failed, 0);
  section.hidden = total === 0;
  fill(section, h('h2', { id: 'failures-title' }, 'Table 3. Failed runs'),
    h('p', { class: 'note' }, `${plural(total, 'run')} failed${data.failuresLeftOut > 0
      ? `; ${fixed(data.failuresLeftOut, 0)} of them are left out here (bubblesim results list ` +
        '--failed has all)' : ''}. They are in no figure; the sweep, run again, runs them again.`),
    table);
  const settings = (one) => one.settings.map(([pointer, value]) => `${pointer} = ${value}`)
    .join('\n');
  const draw = () => fill(table, ...tableOf([
    { id: 'key', title: 'key', value: (one) => one.key,
      cell: (one) => h('span', { class: 'key' }, one.key.slice(0, 8)) },
    { id: 'sweep', title: 'sweep', value: (one) => one.sweep, text: (one) => one.sweep },
    { id: 'seed', title: 'seed', number: true, value: (one) => Number(one.seed),
      text: (one) => one.seed },
    { id: 'settings', title: 'settings', long: true, value: settings, text: settings },
    { id: 'reason', title: 'reason', long: true, value: (one) => one.reason,
      text: (one) => one.reason },
    { id: 'finished', title: 'when and where', long: true, value: (one) => one.finished,
      text: (one) => `${timeText(one.finished)}\n${one.host}\n${one.version}` },
  ], data.failures, { label: 'Failed runs', sort: state.sort.failures,
    onSort: sorting('failures', draw, table) }));
  return draw;
}

function countersView() {
  const section = byId('counters');
  const table = h('div', null);
  section.hidden = data.counters.length === 0;
  fill(section, h('h2', { id: 'counters-title' }, 'Table 4. Counters'),
    h('p', { class: 'note' }, 'What was guessed, dropped, clamped or left unfinished, over all ' +
      'runs of this page. An error means: do not trust the run.'), table);
  const draw = () => fill(table, ...tableOf([
    { id: 'severity', title: 'severity', value: (one) => one[1], text: (one) => one[1] },
    { id: 'name', title: 'name', value: (one) => one[0],
      cell: (one) => h('span', { class: 'key' }, one[0]) },
    { id: 'runs', title: 'runs', number: true, value: (one) => one[3],
      text: (one) => fixed(one[3], 0) },
    { id: 'count', title: 'count', number: true, value: (one) => one[4],
      text: (one) => fixed(one[4], 0) },
    { id: 'help', title: 'what it counts', long: true, value: (one) => one[2],
      text: (one) => one[2] },
  ], data.counters, { label: 'Counters of the runs', sort: state.sort.counters,
    onSort: sorting('counters', draw, table) }));
  return draw;
}
