// Puts the page together. A part that fails says so in its place and leaves the others alone.

function complain(error) {
  const root = document.documentElement;
  root.dataset.errors = (root.dataset.errors ? root.dataset.errors + '; ' : '') +
      (error && error.stack ? error.stack : String(error));
}

const SECTIONS = [
  rampSection, studySection, gainSection, overTimeSection, histogramSection, percentilesSection,
  stagesSection, tracesSection, operationsSection, errorsSection, cellsSection, factsSection
];

function addSection(data, make) {
  try {
    const section = make(data);
    if (!section) return;
    const body = el('div', {class: 'body'});
    document.getElementById('main').append(
        el('section', {id: section.id, 'aria-labelledby': section.id + '-title'},
           el('h2', {id: section.id + '-title'}, section.title),
           section.note ? el('p', {class: 'lead'}, section.note) : null, body));
    document.getElementById('sections').append(el('a', {href: '#' + section.id}, section.title));
    section.build(body);
  } catch (error) {
    complain(error);
    document.getElementById('main').append(
        el('p', {class: 'note warn'}, `A part of this page could not be drawn: ${error.message}`));
  }
}

function start() {
  const text = document.getElementById('result').textContent;
  let data = {};
  try {
    data = JSON.parse(text);
    head(data, text);
  } catch (error) {
    complain(error);
    document.getElementById('head').append(
        el('p', {class: 'note warn'}, `This result cannot be shown: ${error.message}`));
  }
  SECTIONS.forEach((make) => addSection(data, make));
  document.getElementById('foot').append(el(
      'p', {},
      `Tilewire load test, ${data.schema || 'unknown schema'}. ` +
          'This file holds all its data and fetches nothing. Charts: hover, tap, or Tab to one and use the arrow keys.'));
  document.documentElement.dataset.ready = 'true';
}

window.addEventListener('error', (event) => complain(event.error || event.message));
start();
