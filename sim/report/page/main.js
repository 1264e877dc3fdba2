// Puts the page together.

function summaryText() {
  const done = sweeps.reduce((sum, sweep) => sum + sweep.done, 0);
  const failed = sweeps.reduce((sum, sweep) => sum + sweep.failed, 0);
  const parts = [`${plural(sweeps.length, 'sweep')}, ${plural(done, 'run')} done`];
  if (failed > 0) parts.push(`${fixed(failed, 0)} failed`);
  parts.push(plural(policies.length, 'policy', 'policies'));
  return `${parts.join(', ')}.`;
}

function drawWarnings() {
  const errors = data.counters.filter(([, severity]) => severity === 'error');
  const box = byId('warnings');
  box.hidden = errors.length === 0;
  fill(box, h('strong', null, 'Some results must not be trusted:'),
    h('ul', null, errors.map(([name, , help, count]) =>
      h('li', null, `${name}, ${plural(count, 'run')}: ${help}`))));
}

function drawProvenance() {
  const times = runs.map((run) => run.finished).filter((time) => time > 0);
  const least = times.reduce((a, b) => Math.min(a, b), Infinity);
  const most = times.reduce((a, b) => Math.max(a, b), 0);
  const cpu = runs.reduce((sum, run) => sum + run.cpu, 0);
  const notes = [];
  if (data.repeated > 0) {
    notes.push(`${plural(data.repeated, 'row')} of the same point and seed, of other versions of ` +
      'the program, are in no figure: the first in the store\u2019s order counts.');
  }
  if (data.configsLeftOut > 0) {
    notes.push(`${plural(data.configsLeftOut, 'config')} are left out to keep this page small; ` +
      'bubblesim results STORE show KEY prints them.');
  }
  fill(byId('provenance'), h('h2', { id: 'provenance-title' }, 'Provenance'),
    h('div', { class: 'scroll' }, h('table', null, h('tbody', null, [
      ['Selection', data.selection.join('\n') || 'everything in the store'],
      ['Devices', data.devices.filter(Boolean).join('\n')],
      ['Program', data.versions.join('\n')],
      ['Hosts', data.hosts.join('\n')],
      ['Finished', times.length > 0 ? `${timeText(least)}\nto ${timeText(most)}` : ''],
      ['Time of CPU', `${numberText(cpu)} s in runs`],
      ...sweeps.map((sweep) => [`Sweep ${sweep.name}`, `${plural(sweep.done, 'run')} done, ${
        fixed(sweep.failed, 0)} failed`]),
    ].map(([name, text]) => h('tr', null, h('th', { scope: 'row' }, name),
      h('td', { class: 'text' }, text)))))),
    notes.length > 0 ? h('p', { class: 'note' }, notes.join(' ')) : null,
    h('p', { class: 'note' }, 'Every figure is a column of bubblesim\u2019s results store, ' +
      'defined in its sim/observe/OUTPUTS.md. Made by bubblesim report.'));
}

function start() {
  byId('summary').textContent = summaryText();
  drawWarnings();
  drawProvenance();
  if (points.length === 0) {
    byId('columns').classList.add('empty');
    byId('filters').hidden = true;
    byId('detail').hidden = true;
    for (const id of ['trade', 'curves', 'bubbles', 'timelines', 'points', 'comparisons']) {
      byId(id).hidden = true;
    }
    views.push(failuresView(), countersView());
    for (const view of views) view();
    return;
  }
  views.push(drawFilters, scatterView(), curvesView(), barsView(), timelinesView(), pointsView(),
    comparisonsView(), failuresView(), countersView(), drawDetail);
  readHash();
  choosePoints();
  for (const view of views) view();
  addEventListener('hashchange', () => {
    if (location.hash.slice(1) === written) return;
    readHash();
    choosePoints();
    for (const view of views) view();
  });
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && state.point !== null &&
        byId('detail').contains(document.activeElement)) closeDetail();
  });
  document.addEventListener('focusin', (event) => {
    if (event.target.matches('.plot')) openedFrom = event.target;
  });
  byId('filters').addEventListener('submit', (event) => event.preventDefault());
}

start();
document.documentElement.dataset.ready = 'yes';
