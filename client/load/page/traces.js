// Typical requests, span by span: one row for each stream and lane, one colour a stage.

const LANE_STAGES = new Set(['h2d', 'kernel', 'd2h']);
/** How stages of newer versions are drawn. */
const UNKNOWN_STAGE = 'faint';
const ALL_STAGES = [...new Set([...CLIENT_STAGES, ...STAGES, UNKNOWN_STAGE])];
/** More spans at once than that in one row are drawn over each other. */
const MAX_LEVELS = 6;
const SPAN_TALL = 15;
const MIN_SPAN_US = 0.001;

const trackName = (span) => (
    typeof span.track === 'string' ? span.track :
                                     `${LANE_STAGES.has(span.stage) ? 'lane' : 'stream'} ${span.track ?? 0}`);

const byName = new Intl.Collator('en', {numeric: true});

/**
 * Rows of a trace: {process, track, depth, spans: [{…, level}]}; spans that overlap in a row get levels of
 * their own.
 */
function traceRows(trace) {
  const rows = new Map();
  for (const span of list(trace.spans)) {
    if (num(span.begin_us) === null || num(span.end_us) === null || span.end_us < span.begin_us) continue;
    const track = trackName(span);
    const key = `${span.process} ${track}`;
    if (!rows.has(key)) rows.set(key, {process: span.process || '', track, spans: []});
    rows.get(key).spans.push({...span});
  }
  const rank = (row) => (row.process === 'client' ? 0 : 10) +
      (row.track.startsWith('stream')   ? 1 :
           row.track.startsWith('lane') ? 2 :
                                          0);
  const sorted = [...rows.values()].sort((a, b) => rank(a) - rank(b) || byName.compare(a.track, b.track));
  for (const row of sorted) {
    const ends = [];
    row.spans.sort((a, b) => a.begin_us - b.begin_us);
    for (const span of row.spans) {
      let level = ends.findIndex((end) => end <= span.begin_us + MIN_SPAN_US);
      if (level < 0) level = Math.min(ends.length, MAX_LEVELS - 1);
      ends[level] = span.end_us;
      span.level = level;
    }
    row.depth = ends.length;
  }
  return sorted;
}

/** Rows get places, processes a heading each. */
function layOut(rows) {
  let y = 8;
  let process = null;
  const headings = [];
  for (const row of rows) {
    if (row.process !== process) {
      process = row.process;
      headings.push({text: process, y: y + 12});
      y += 20;
    }
    row.top = y;
    row.height = row.depth * SPAN_TALL + 3;
    y += row.height + 4;
  }
  return {headings, bottom: y + 2};
}

/** One path for each stage of a row, clipped to the window of times. */
function spanPaths(row, x, left, right) {
  return ALL_STAGES.map((stage) => {
    const spans =
        row.spans.filter((span) => (ALL_STAGES.includes(span.stage) ? span.stage : UNKNOWN_STAGE) === stage);
    const path = spans
                     .map((span) => {
                       const from = Math.max(left, x(span.begin_us));
                       const to = Math.min(right, Math.max(x(span.end_us), from + 1));
                       const y = row.top + span.level * SPAN_TALL + 1;
                       return to > left && from < right ?
                           `M${px(from)} ${y}H${px(to)}v${SPAN_TALL - 2}H${px(from)}z` :
                           '';
                     })
                     .join('');
    return path ?
        svg('path',
            {class: 'solid span m-' + stage, 'data-stage': stage, 'data-spans': spans.length, d: path}) :
        null;
  });
}

function spanTip(span, row) {
  return {
    title: span.stage,
    rows: [
      ['Begins', time(span.begin_us), 'm-' + span.stage], ['Takes', time(span.end_us - span.begin_us)],
      ['On', `${row.process} ${row.track}`],
      ...(span.spans > 1 ? [['Merged', `${count(span.spans)} spans, busy ${time(span.busy_us)}`]] : [])
    ]
  };
}

/** Times below the timeline. Labels that would touch the one before are left out. */
function timeAxisBelow({left, right, bottom, scale, view, width}) {
  const ticks = timeTicks(view.to);
  let free = -Infinity;
  const parts = [svg('line', {class: 'base', x1: left, x2: right, y1: bottom, y2: bottom})];
  for (const tick of scale.ticks(width / 100)) {
    const x = px(scale(tick));
    const label = ticks.text(tick);
    const half = textWidth(label) / 2;
    parts.push(svg('line', {class: 'grid', x1: x, x2: x, y1: 4, y2: bottom + 4}));
    if (x - half < free) continue;
    free = x + half + 10;
    parts.push(svg('text', {x, y: bottom + 18, 'text-anchor': 'middle'}, label));
  }
  const title = `Since the call's start, ${ticks.unit}`;
  parts.push(
      svg('text', {class: 'unit', x: (left + right) / 2, y: bottom + 36, 'text-anchor': 'middle'}, title));
  return svg('g', {class: 'axis'}, parts);
}

/** Draws the part of the trace in `view` ({from, to}, microseconds). `zoom(from, to)` shows another part. */
function drawTrace(width, trace, view, zoom) {
  const rows = traceRows(trace);
  const {headings, bottom} = layOut(rows);
  const left = Math.min(110, 12 + Math.max(...rows.map((row) => textWidth(row.track))));
  const right = width - 8;
  const x = linear(view.from, view.to, left, right);
  const ring = svg('rect', {class: 'ring', visibility: 'hidden', rx: 2, height: SPAN_TALL + 1});
  const brush = svg('rect', {class: 'brush', visibility: 'hidden', y: 0, height: bottom});
  const root = canvas(
      width, bottom + 42,
      `Timeline of one ${trace.operation} request; the arrow keys read it span by span, + and - zoom`,
      timeAxisBelow({left, right, bottom, scale: x, view, width}),
      headings.map(({text, y}) => svg('text', {class: 'heading', x: 0, y}, text)),
      rows.map(
          (row) => svg(
              'g', {'data-track': row.track},
              svg('rect', {class: 'lane', x: left, y: row.top, width: right - left, height: row.height - 2}),
              svg('text', {x: left - 8, y: row.top + row.height / 2 + 3, 'text-anchor': 'end'}, row.track),
              spanPaths(row, x, left, right))),
      ring, brush);
  const items = rows.flatMap(
      (row) => row.spans.map((span) => ({
                               span,
                               row,
                               y: row.top + (span.level + 0.5) * SPAN_TALL,
                               x: Math.min(right, Math.max(left, (x(span.begin_us) + x(span.end_us)) / 2)),
                               tip: () => spanTip(span, row)
                             })));
  const near = (item, at) => Math.max(x(item.span.begin_us) - at, at - x(item.span.end_us), 0);
  explore(root, {
    items,
    nearest(at, y) {
      let best = -1;
      items.forEach((item, index) => {
        if (Math.abs(item.y - y) <= SPAN_TALL / 2 && near(item, at) <= 4 &&
            (best < 0 || near(item, at) < near(items[best], at)))
          best = index;
      });
      return best;
    },
    mark: marker(
        ring,
        (index) => {
          const {span, y} = items[index];
          const from = Math.max(left, x(span.begin_us));
          return {
            x: px(from - 1),
            y: px(y - SPAN_TALL / 2 - 0.5),
            width: px(Math.max(1, Math.min(right, x(span.end_us)) - from) + 2)
          };
        }),
  });
  dragToZoom(root, brush, {x, left, right, view, zoom});
  return root;
}

/**
 * Dragging over the chart zooms into what was swept; + and - zoom around the middle; 0 or a double click
 * shows all.
 */
function dragToZoom(root, brush, {x, left, right, view, zoom}) {
  let begin = null;
  const at = (event) => {
    const box = root.getBoundingClientRect();
    return Math.min(
        right, Math.max(left, ((event.clientX - box.left) * root.viewBox.baseVal.width) / box.width));
  };
  const around = (times) => {
    const middle = (view.from + view.to) / 2;
    zoom(middle - ((view.to - view.from) * times) / 2, middle + ((view.to - view.from) * times) / 2);
  };
  root.addEventListener('pointerdown', (event) => {
    if (event.pointerType !== 'touch') begin = at(event);
  });
  root.addEventListener('pointermove', (event) => {
    if (begin === null) return;
    const now = at(event);
    brush.setAttribute('visibility', Math.abs(now - begin) > 3 ? 'visible' : 'hidden');
    brush.setAttribute('x', px(Math.min(begin, now)));
    brush.setAttribute('width', px(Math.abs(now - begin)));
  });
  root.addEventListener('pointerup', (event) => {
    const now = at(event);
    const from = begin;
    begin = null;
    if (from !== null && Math.abs(now - from) > 6)
      zoom(x.invert(Math.min(from, now)), x.invert(Math.max(from, now)));
  });
  root.addEventListener('dblclick', () => zoom());
  root.addEventListener('keydown', (event) => {
    if (event.key === '+' || event.key === '=')
      around(0.5);
    else if (event.key === '-')
      around(2);
    else if (event.key === '0')
      zoom();
  });
}

/** What is not drawn span by span, in words. */
function traceOmissions(trace) {
  const drawn = list(trace.spans).length;
  const merged = trace.recorded > drawn ? `${count(trace.recorded)} spans are drawn as ${
                                              count(drawn)}: in each row, neighbours of one stage with ` +
          'the shortest gaps between them are merged. ' :
                                          '';
  const text = merged + (trace.dropped > 0 ? `${count(trace.dropped)} more spans were not kept.` : '');
  return text ? el('p', {class: 'omitted'}, text) : null;
}

function traceFigure(trace, index) {
  const all = list(trace.spans)
                  .reduce((high, span) => Math.max(high, num(span.end_us) || 0), num(trace.wall_us) || 1);
  const view = {from: 0, to: all};
  const host = el('div', {class: 'plot'});
  const reset =
      el('button', {type: 'button', class: 'quiet', hidden: true, onclick: () => zoom()}, 'Show all');
  let redraw = null;
  const zoom = (from = 0, to = all) => {
    if (to - from < 0.05) return;
    view.from = Math.max(0, from);
    view.to = Math.min(all, to);
    reset.hidden = view.from === 0 && view.to === all;
    const focused = host.contains(document.activeElement);
    redraw();
    if (focused) host.firstElementChild.focus({preventScroll: true});
  };
  const overlap = num(trace.overlap);
  const figure_ =
      el('figure', {class: 'trace'},
         el('figcaption', {}, el('strong', {}, trace.operation), ` ${time(trace.wall_us)}`,
            overlap === null ? null : `, overlap ${factor(overlap)}`, reset),
         host, traceOmissions(trace));
  return {
    node: figure_,
    start: () => {
      redraw = chart(host, `trace-${index}`, (width) => drawTrace(width, trace, view, zoom));
    }
  };
}

function tracesSection(data) {
  const traces = list(data.traces).filter((trace) => traceRows(trace).length);
  if (!traces.length) return null;
  const spans = traces.flatMap((trace) => list(trace.spans));
  const keys =
      [['client', CLIENT_STAGES, CLIENT_WORDS], ['server', STAGES, STAGE_WORDS]]
          .map(([process, stages, words]) => ({
                 process,
                 entries: stages
                              .filter(
                                  (stage) =>
                                      spans.some((span) => span.stage === stage && span.process === process))
                              .map((stage) => ({name: `${stage}: ${words[stage]}`, mark: 'm-' + stage}))
               }))
          .filter(({entries}) => entries.length);
  return {
    id: 'traces',
    title: 'Typical requests',
    note:
        'Requests of typical latency. What stands above one another ran at the same time. Drag over a chart to zoom in, double-click to see all.',
    build(body) {
      body.append(el(
          'dl', {class: 'keys'},
          keys.map(
              ({process, entries}) => el('div', {}, el('dt', {}, process), el('dd', {}, legend(entries))))));
      traces.map(traceFigure).forEach(({node, start}) => {
        body.append(node);
        start();
      });
    },
  };
}
