// Puts the page of a trace or a run together: timelines, and the table beside them.

const data = JSON.parse(byId('data').textContent);

/** Without what is empty, and names that are the same in all rows, as that of the only filler. */
function tellingColumns(table) {
  return table.columns.map((column, place) => ({ ...column, place, id: freshId('column') }))
    .filter(({ number, place }) => {
      const texts = new Set(table.rows.map((row) => row.cells[place]));
      return place === 0 || texts.size > 1 || (number && !texts.has(''));
    });
}

function viewTable(table) {
  if (table.rows.length === 0) return null;
  const columns = tellingColumns(table).map((column) => ({ ...column,
    text: (row) => row.cells[column.place] }));
  return h('aside', { class: 'beside' },
    ...tableOf(columns, table.rows, { label: table.caption, first: 100 }));
}

/** Several charts of one axis, one at a time; what is seen stays when another is chosen. */
function viewCharts(section) {
  if (section.charts.length === 0) return { part: null, draw: () => {} };
  const container = h('div', null);
  let view = null;
  const show = (place) => {
    const { label: name, chart } = section.charts[place];
    const drawn = timelineChart(container, chart,
      { title: [section.title, name].filter(Boolean).join(', '), view });
    view = drawn.view;
    drawn.redraw();
  };
  const select = h('select', { on: { change: (event) => show(Number(event.target.value)) } },
    section.charts.map(({ label: name }, place) => h('option', { value: place }, name)));
  const field = section.charts.length > 1
    ? h('label', { class: 'field' }, h('span', null, 'GPU'), select) : null;
  return { part: h('div', { class: 'charts' }, field, container), draw: () => show(0) };
}

function viewSection(section) {
  const { part, draw } = viewCharts(section);
  const title = freshId('section');
  byId('figures').append(h('section', { 'aria-labelledby': title },
    h('h2', { id: title }, section.title),
    h('p', { class: 'note lines' }, section.notes.join('\n')),
    h('div', { class: 'pair' }, part, viewTable(section.table))));
  draw();
}

data.sections.forEach(viewSection);
document.documentElement.dataset.ready = 'yes';
