// The page of a fleet: what each kind of job gains, the works, the jobs one by one.

const data = JSON.parse(byId('data').textContent);
const works = data.work.map((one) => one.work);
const choosePoint = () => {};
const kBar = 16;
const kRow = 30;

/** Kinds that take something, the largest gain first. */
function barsOf() {
  return data.kinds.map((kind) => {
    const parts = kind.answers.map((answer, work) => ({ work, answer,
      gained: answer.reason === undefined ? answer.gpu_hours * answer.gains_per_gpu : 0,
      lost: answer.reason === undefined ? answer.gpu_hours * (1 - answer.training_kept) : 0 }))
      .filter((part) => part.gained > 0);
    const sum = (name) => parts.reduce((all, part) => all + part[name], 0);
    return { kind, parts, gained: sum('gained'), lost: sum('lost') };
  }).filter((bar) => bar.parts.length > 0).sort((a, b) => b.gained - a.gained);
}

function barParts(bar, top, x, marks) {
  let from = 0;
  const shapes = bar.parts.map(({ work, answer, gained, lost }) => {
    const [left, right] = [x.scale(from), x.scale(from + gained)];
    from += gained;
    marks.push({ x: round((left + right) / 2), y: round(top + kBar / 2), policy: work,
      text: `${bar.kind.kind} with ${works[work]}\n${answer.setting}\ngains ${
        numberText(gained)} GPU-hours a day, training loses ${numberText(lost)}\nof ${
        numberText(answer.gpu_hours)} GPU-hours filled` });
    return s('rect', { class: `bar ${hue(work)}`, x: round(left), y: round(top),
      width: round(Math.max(1, right - left)), height: kBar });
  });
  const lost = s('rect', { class: 'lost', x: round(x.scale(0)), y: round(top + kBar + 1),
    width: round(Math.max(0, x.scale(bar.lost) - x.scale(0))), height: 4 });
  return [...shapes, lost];
}

function drawBars(plot, width) {
  const bars = barsOf();
  const named = Math.min(width * 0.32, 12 + Math.max(40,
    ...bars.map((bar) => textWidth(bar.kind.kind))));
  const box = { left: named, right: width - 14, outer: width, top: 16,
    bottom: 16 + bars.length * kRow };
  const x = linearScale(0, Math.max(1e-9, ...bars.map((bar) => bar.gained)), box.left, box.right,
    Math.max(3, Math.floor(width / 110)));
  const marks = [];
  const room = Math.floor((named - 12) / 6.7);
  const parts = bars.flatMap((bar, place) => {
    const top = box.top + place * kRow + 4;
    const text = bar.kind.kind.length > room ? `${bar.kind.kind.slice(0, room - 1)}\u2026`
      : bar.kind.kind;
    return [label(box.left - 6, top + kBar - 4, text, { 'text-anchor': 'end' }),
      ...barParts(bar, top, x, marks)];
  });
  const grid = x.ticks.flatMap((tick) => [line(x.scale(tick), box.top, x.scale(tick), box.bottom,
    'grid'), label(x.scale(tick), box.bottom + 16, x.text(tick),
    { class: 'tick', 'text-anchor': 'middle' })]);
  putChart(plot, width, box.bottom + 44, `GPU-hours gained a day: ${plural(bars.length, 'kind')}`,
    'A bar a kind of job, a part a work; the thin bar below is what training loses.',
    [...grid, ...parts, label(box.right, box.bottom + 36, 'GPU-hours a day \u2192',
      { class: 'title', 'text-anchor': 'end' })], marks);
}

function kindRows() {
  return data.kinds.flatMap((kind) => kind.answers.map((answer) => ({ kind, answer })));
}

function kindsTable() {
  const known = (value) => ({ answer }) => (answer.reason === undefined ? value(answer) : null);
  const columns = [
    valueColumn('kind', 'kind', '', ({ kind }) => kind.kind),
    valueColumn('count', 'jobs', '', ({ kind }) => kind.jobs, 0),
    valueColumn('device', 'device', '', ({ kind }) => kind.device),
    valueColumn('hours', 'has', 'GPU-h', ({ kind }) => kind.gpu_hours, 1),
    valueColumn('bubbles', 'bubbles', '%', ({ kind }) => 100 * kind.bubble_share, 1),
    valueColumn('work', 'work', '', ({ answer }) => answer.work),
    valueColumn('filled', 'filled', 'GPU-h', ({ answer }) => answer.gpu_hours, 1),
    valueColumn('gains', 'gains', 'a GPU', known((answer) => answer.gains_per_gpu), 4),
    valueColumn('kept', 'training kept', '', known((answer) => answer.training_kept), 4),
    valueColumn('setting', 'setting, or why not', '',
      ({ answer }) => answer.setting || answer.reason)];
  columns[columns.length - 1].long = true;
  return sortedTable('Each kind of job with each work', columns, kindRows());
}

function worksTable() {
  return sortedTable('The queue', [
    valueColumn('work', 'work', '', (one) => one.work),
    valueColumn('gained', 'gained', 'GPU-h a day', (one) => one.gained_gpu_hours, 2),
    valueColumn('requests', 'requests', 'a day', (one) => one.requests, 0),
    valueColumn('queue', 'in the queue', '', (one) => one.requests_in_queue, 0),
    valueColumn('weight', 'weight', '', (one) => one.weight, 2)], data.work);
}

function jobsTable() {
  return sortedTable('Jobs that take work', [
    valueColumn('job', 'job', '', (one) => one.job),
    valueColumn('kind', 'kind', '', (one) => one.kind),
    valueColumn('gpus', 'GPUs', '', (one) => one.gpus, 0),
    valueColumn('work', 'work', '', (one) => one.work),
    valueColumn('hours', 'hours', 'of the day', (one) => one.hours, 2),
    valueColumn('policy', 'policy', '', (one) => one.policy),
    valueColumn('gained', 'gained', 'GPU-h', (one) => one.gained_gpu_hours, 2),
    valueColumn('lost', 'training loses', 'GPU-h', (one) => one.lost_gpu_hours, 2)],
  data.placements);
}

function worksLegend() {
  return h('div', { class: 'legend' }, works.map((work, place) =>
    h('span', null, s('svg', { class: `chip ${hue(place)}`, viewBox: '0 0 12 12',
      'aria-hidden': 'true' }, s('rect', { width: 12, height: 12, fill: 'var(--c)' })), work)),
  h('span', null, s('svg', { class: 'chip', viewBox: '0 0 12 12', 'aria-hidden': 'true' },
    s('rect', { class: 'lost', y: 4, width: 12, height: 4 })), 'training loses'));
}

function start() {
  byId('summary').textContent = `${data.summary}. Training keeps at least ${
    numberText(data.limits.keep)}.`;
  const plot = plotPlace('GPU-hours gained a day');
  const redraw = drawnIn(plot, (width) => drawBars(plot, width));
  fill(byId('kinds'), h('h2', { id: 'kinds-title' }, 'What each kind of job gains'),
    worksLegend(), h('div', { class: 'figure' }, plot), kindsTable());
  fill(byId('works'), h('h2', { id: 'works-title' }, 'The queue'), worksTable());
  fill(byId('jobs'), h('h2', { id: 'jobs-title' }, 'Jobs'), jobsTable());
  redraw();
}

start();
document.documentElement.dataset.ready = 'yes';
