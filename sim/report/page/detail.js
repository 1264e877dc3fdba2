// Where a point comes from: figures, runs, settings, program, config.

function pairs(entries) {
  return h('dl', null, entries.filter(([, value]) => value !== '' && value !== null)
    .map(([name, value, kind]) => [h('dt', null, name), h('dd', { class: kind || null }, value)]));
}

function configOf(run) {
  const base = sweeps[run.sweep].config;
  const details = h('details', null, h('summary', null, 'Config of the run'));
  details.addEventListener('toggle', () => {
    if (!details.open || details.children.length > 1) return;
    const text = run.patch === null || typeof base === 'string'
      ? 'Left out to keep this page small.'
      : JSON.stringify(patched(base, run.patch), null, 1);
    details.append(h('pre', { tabindex: 0 }, text));
  });
  return details;
}

function countersOf(run) {
  return run.counters.map(([place, count]) => {
    const [name, severity] = data.counters[place];
    return [`${severity}: ${name}`, fixed(count, 0)];
  });
}

function runParts(point, place) {
  const run = runs[point.runs[place]];
  const values = (point.byRun[place] || []).map((value, at) => [metricTitle(metrics[at]),
    value === null ? '' : numberText(shown(metrics[at], value))]);
  return h('details', { class: 'run' },
    h('summary', null, `Seed ${run.seed}, run ${run.key.slice(0, 8)}`),
    pairs([['Key', ''], ['', run.key, 'key'], ['Index in the sweep', fixed(run.index, 0)],
      ['Device', run.device], ['Program', run.version], ['Host', run.host],
      ['Finished', timeText(run.finished)], ['Time of CPU', `${numberText(run.cpu)} s`]]
      .filter(([name, value]) => name !== 'Key' || value)),
    values.length > 0 ? pairs(values) : null,
    run.counters.length > 0 ? [h('h3', null, 'Counters'), pairs(countersOf(run))] : null,
    configOf(run));
}

function drawDetail() {
  const panel = byId('detail');
  panel.classList.toggle('open', state.point !== null);
  if (state.point === null) {
    fill(panel, h('h2', null, 'Where a point comes from'),
      h('p', { class: 'note' }, 'Choose a point in a figure or a policy in a table: its figures, ' +
        'seeds, runs, settings, program, host, time and config stand here.'));
    return;
  }
  const point = points[state.point];
  const policy = policies[point.policy];
  const sweep = sweeps[point.sweep];
  const figures = metrics.map((metric, place) => {
    const value = figure(point, place);
    return [metricTitle(metric), value === null ? '' : figureText(value)];
  });
  const settings = sweep.axes.map((axis, place) => [axis.pointer,
    point.values[place] < 0 ? '' : valueText(axis, point.values[place])]);
  fill(panel,
    h('button', { id: 'close', type: 'button', on: { click: closeDetail } }, 'Close'),
    h('h2', null, swatch(point.policy), rowName(point)),
    h('p', { class: 'note' }, [`Sweep ${sweep.name}`, data.fillers[point.filler] &&
      `filler ${data.fillers[point.filler]}`, plural(point.runs.length, 'seed')]
      .filter(Boolean).join(', ') + '.' + lossNote([point])),
    pairs(figures),
    h('h3', null, 'Settings'), pairs(settings.length > 0 ? settings : [['', 'none']]),
    policy.parameters ? h('details', null, h('summary', null, 'Parameters of the policy'),
      pairs(policy.parameters.split(';').map((text) => text.split(/=(.*)/s).slice(0, 2)))) : null,
    h('h3', null, point.runs.length > 1 ? 'Runs' : 'Run'),
    ...point.runs.map((_, place) => runParts(point, place)));
  if (point.runs.length === 1) panel.querySelector('.run').open = true;
}

let openedFrom = null;
function closeDetail() {
  choosePoint(null, false);
  if (openedFrom && openedFrom.isConnected) openedFrom.focus();
}

/** Shows in the tables which point is chosen. */
function markChosen() {
  for (const row of document.querySelectorAll('tr[data-point]')) {
    row.classList.toggle('chosen', Number(row.dataset.point) === state.point);
  }
}
