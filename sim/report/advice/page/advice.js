// Puts the page of an answer, or of several, together.

const data = JSON.parse(byId('data').textContent);
let choosePoint = () => {};

/** Commands are what a reader copies. */
const lineText = (text) => (text.startsWith('bubblesim ') ? h('code', null, text) : text);

function answerPart({ title, lines }) {
  return [h('h3', null, title), lines.length === 0 ? null : h('dl', null,
    lines.map(([word, text]) => [h('dt', null, word), h('dd', null, lineText(text))]))];
}

function figure(title, note, legend, draw) {
  const plot = plotPlace(title);
  const redraw = drawnIn(plot, (width) => draw(plot, width));
  return { part: [h('h3', null, title), note, legend, h('div', { class: 'figure' }, plot)],
    redraw };
}

function figuresOf(answer, points) {
  const measured = points.some((point) => point.p95 !== null);
  const ends = measured ? latencyEnds(answer, points) : [];
  const colour = measured ? (point) => latencyClass(point, ends) : (point) => hue(point.policy);
  const least = leastShown(answer);
  const hidden = points.filter((point) => point.kept < least).length;
  const beyond = hidden > 0 ? ` ${plural(hidden, 'setting')} that keep less than ${
    numberText(least)} of training are in the table only.` : '';
  const note = h('p', { class: 'note' }, 'A mark is a setting; its form is its policy; small ones ' +
    'were simulated for a short time, hollow ones cannot be had. The line is the Pareto front of ' +
    `those that can, of a third of the full length or longer.${beyond}`);
  const figures = [figure('Training kept against filler gained', note,
    [measured ? latencyLegend(answer, ends) : null, policyLegend(answer, points)],
    (plot, width) => drawTrade(plot, width, answer, points, colour))];
  if (measured) {
    figures.push(figure('Latency against filler gained', null, policyLegend(answer, points),
      (plot, width) => drawLatency(plot, width, answer, points)));
  }
  return figures;
}

/** Where Enter or a click shows a point: its setting as a run config has it. */
function chosenPlace(answer, points) {
  const place = h('p', { class: 'note chosen-setting', tabindex: -1 },
    'Enter, or a click, on a mark shows its setting here.');
  const choose = (id) => fill(place, h('strong', null, points[id].setting), ' as a policy of a run ' +
    'config: ', h('code', null, JSON.stringify(points[id].entry)));
  return { place, choose };
}

function answerSection(answer) {
  const points = pointsOf(answer);
  const title = freshId('answer');
  const figures = figuresOf(answer, points);
  const chosen = chosenPlace(answer, points);
  const section = h('section', { 'aria-labelledby': title },
    h('h2', { id: title, class: data.answers.length > 1 ? null : 'unseen' }, answer.name),
    h('div', { class: 'answer' }, answer.text.map(answerPart)), figures.map((one) => one.part),
    chosen.place, h('h3', null, 'Settings that were tried'), pointsTable(answer, points),
    h('p', { class: 'note' }, `${plural(answer.search.trials, 'trial')} of ${
      plural(answer.search.settings, 'setting')}; the longest ${
      numberText(answer.search.length_ns / 1e9)} s simulated.`));
  byId('answers').append(section);
  for (const plot of section.querySelectorAll('.plot')) {
    plot.addEventListener('pointerdown', () => { choosePoint = chosen.choose; });
    plot.addEventListener('focus', () => { choosePoint = chosen.choose; });
  }
  figures.forEach((one) => one.redraw());
}

data.answers.forEach(answerSection);
document.documentElement.dataset.ready = 'yes';
