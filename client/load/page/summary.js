// What a reader sees first: one sentence, warnings, the key figures.

/** The sentence on top: what came out, in one breath. */
function headlineOf(data) {
  if (data.kind === 'study') return studyHeadline(data);
  const total = data.total || {};
  const latency = total.latency_us || {};
  const mode = data.mode || {};
  if (!num(total.calls)) return 'No call ended: nothing was measured.';
  const tail = latency.p99 > 0 ? ` with p99 at ${time(latency.p99)}` : '';
  const right = num(total.wrong) > 0 ? `; ${count(total.wrong)} wrong` :
      errorsOf(total) ? `; ${percent(errorsOf(total) / total.calls)} failed` :
                        '; every answer right';
  if (mode.type === 'ramp') {
    return num(mode.best_rate) ?
        `Holds ${si(mode.best_rate)} calls a second with ${percentileName(mode.percentile || 'p99')} under ${
            time(mode.bound_us)}.` :
        `No rate held ${percentileName(mode.percentile || 'p99')} under ${time(mode.bound_us)}.`;
  }
  const short = mode.type === 'open' && total.calls_per_second < 0.98 * mode.rate;
  const calls = si(total.calls_per_second) + (short ? ` of ${si(mode.rate)}` : '');
  return `${rate(total.bytes_per_second)}${noiseText(total.noise)} and ${calls} calls a second${tail}${
      right}.`;
}

/** What overlap is worth for each way that arrays went: at what is recommended, or in the middle of all. */
function overlapWorth(data) {
  const advice = list(data.recommendations).filter(({overlap_worth: worth}) => num(worth) !== null);
  if (advice.length) {
    return advice
        .map(
            ({via, overlap_worth: worth, overlap_worth_noise: noise}) =>
                `${factor(worth)}${noiseText(noise)} ${viaWords(via)}`)
        .join(' and ');
  }
  const gains = overlapPairs(list(data.study)).map(({gain}) => gain).sort((a, b) => a - b);
  return gains.length ? factor(gains[gains.length >> 1]) : '';
}

function studyHeadline(data) {
  const best = bestCell(list(data.study));
  if (!best) return 'Nothing was measured.';
  const worth = overlapWorth(data);
  const much = `${rate(best.bytes_per_second)}${noiseText(best.noise)} at best, with ${cellText(best)}`;
  return worth ? `Overlap is worth ${worth}; ${much}.` : `${much}.`;
}

function bestCell(cells) {
  return cells.reduce(
      (best, cell) =>
          ((num(cell.bytes_per_second) ?? -1) > (best ? best.bytes_per_second : -1) ? cell : best),
      null);
}

function cellText(cell) {
  const plural = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;
  return [
    `${cell.operation} of ${size(cell.bytes)}${viaOf(cell) === 'wire' ? '' : ' ' + viaWords(viaOf(cell))}`,
    cell.block_bytes ? `blocks of ${size(cell.block_bytes)}` : '',
    cell.lanes ? plural(cell.lanes, 'lane') : '',
    viaOf(cell) === 'region' ? '' : plural(cell.connections, 'connection')
  ].filter(Boolean)
      .join(', ');
}

const figure = (label, value, note, state) =>
    (value === DASH ? null : {label, value, note: note || '', state: state || ''});

/** The note of a figure, with its noise in front. */
const noted = (noise, text) => [noiseText(noise).trim(), text].filter(Boolean).join('; ');

function answersFigure(total) {
  const failed = errorsOf(total);
  const wrong = num(total.wrong) || 0;
  const parts = [];
  if (wrong) parts.push(`${count(wrong)} wrong`);
  if (failed) parts.push(`${count(failed)} failed`);
  if (!num(total.calls)) return figure('Right answers', 'none', 'no call ended', 'bad');
  const share = total.good / total.calls;
  return figure(
      'Right answers', wrong || failed ? percent(share) : 'all',
      parts.length ? `${parts.join(', ')} of ${count(total.calls)}` :
                     `${count(total.calls)} calls, each one checked`,
      wrong      ? 'bad' :
          failed ? 'odd' :
                   'fine');
}

function runFigures(data) {
  const total = data.total || {};
  const latency = total.latency_us || {};
  const mode = data.mode || {};
  const ceiling = new Set(list(data.operations).map((stat) => stat.operation)).size === 1 ?
      ceilingOf(data.operations[0], data) :
      null;
  const shareNote = ceiling && num(total.bytes_per_second) ?
      `${percent(total.bytes_per_second / ceiling.rate)} ${ceiling.words}` :
      'operands and results';
  const timed = list(total.histogram).reduce((sum, [, calls]) => sum + calls, 0);  // those that ended well
  const callsNote = mode.type === 'open' ? `${perSecond(mode.rate)} intended` : modeText(mode);
  return [
    mode.type === 'ramp' ? figure(
                               'Highest rate held', perSecond(mode.best_rate),
                               `${percentileName(mode.percentile || 'p99')} under ${time(mode.bound_us)}`) :
                           null,
    figure('Throughput', rate(total.bytes_per_second), noted(total.noise, shareNote)),
    figure('Calls', perSecond(total.calls_per_second), callsNote),
    figure('Latency, p50', timeOrNone(latency.p50), `half of ${count(timed)} calls`),
    figure('Latency, p99', timeOrNone(latency.p99), num(latency.p90) ? `p90 ${time(latency.p90)}` : ''),
    num(latency.p99_9) ?
        figure('Latency, p99.9', timeOrNone(latency.p99_9), `longest ${timeOrNone(latency.max)}`) :
        figure('Longest call', timeOrNone(latency.max), `of ${count(timed)}`),
    answersFigure(total),
    figure('Overlap', factor(total.overlap), 'sum of the stages ÷ wall'),
  ].filter(Boolean);
}

/** Of all settings, for each way that arrays went. */
function gainFigures(cells) {
  const ways = [...new Set(cells.map(viaOf))];
  return ways.map((via) => {
    const mine = cells.filter((cell) => viaOf(cell) === via);
    const gains = overlapPairs(mine).map(({gain}) => gain).sort((a, b) => a - b);
    if (!gains.length) return null;
    return figure(
        ways.length > 1 ? `Overlap ${viaWords(via)}` : 'Overlap is worth', factor(gains[gains.length >> 1]),
        `median of ${count(gains.length)}; ${factor(gains[0])} to ${factor(gains[gains.length - 1])}`);
  });
}

function studyFigures(data) {
  const cells = list(data.study);
  const best = bestCell(cells);
  if (!best) return [];
  const ceiling = ceilingOf(best, data);
  const slow = cells.reduce((a, b) => (a.bytes_per_second <= b.bytes_per_second ? a : b));
  const advice = data.recommendation;
  return [
    figure(
        'Best throughput', rate(best.bytes_per_second),
        noted(best.noise, `${best.operation} of ${size(best.bytes)}`)),
    ceiling ? figure(
                  'Of the limit', percent(best.bytes_per_second / ceiling.rate),
                  `${ceiling.words}, ${rate(ceiling.rate)}`) :
              null,
    advice ? figure('Block size', blockText(advice.block_bytes), 'recommended') :
             figure('Block size', blockText(best.block_bytes), 'of the best'),
    advice ? figure('Lanes', laneText(advice.lanes), 'recommended') :
             figure('Lanes', laneText(best.lanes), 'of the best'),
    advice ? figure('Connections', count(advice.connections), 'recommended') :
             figure('Connections', count(best.connections), 'of the best'),
    ...gainFigures(cells),
    figure('Measured', count(cells.length), `settings; the slowest ${rate(slow.bytes_per_second)}`),
  ].filter(Boolean);
}

const note = (kind, title, text) =>
    el('div', {class: 'note ' + kind, role: kind === 'warn' ? 'alert' : 'note'}, el('strong', {}, title),
       text ? ' ' + text : '');

function notes(data) {
  const found = [];
  const generator = data.generator || {};
  const total = data.total || {};
  if (num(total.wrong) > 0) {
    found.push(note(
        'warn', `${count(total.wrong)} answer${total.wrong === 1 ? ' had' : 's had'} wrong bits.`,
        'Nothing else on this page matters until that is understood.'));
  }
  if (data.kind === 'study' && errorsOf(total)) {
    found.push(note(
        'odd', `${count(errorsOf(total))} call${errorsOf(total) === 1 ? '' : 's'} failed:`,
        `${Object.keys(total.errors).join(', ')}.`));
  }
  if (generator.bottleneck) {
    found.push(note(
        'warn', 'The load generator was the bottleneck.',
        'These figures say what the generator could send, not what the server can do. ' +
            sentence(generator.text)));
  }
  if (num(generator.checking_share) > 0.01) {
    found.push(note(
        'odd', 'Checking limited the rate.',
        `Callers waited ${percent(generator.checking_share)} of the time for results to be compared.`));
  }
  if (data.stop && ['interrupted', 'server_lost'].includes(data.stop.reason)) {
    found.push(note(
        'odd', data.stop.reason === 'interrupted' ? 'Interrupted.' : 'The server was lost.',
        sentence(data.stop.text)));
  }
  return found;
}

function download(data, text) {
  const stamp = String(data.started || '').replace(/[^0-9A-Za-z]/g, '').slice(0, 16);
  const button = el(
      'a',
      {class: 'button', download: `tilewire-load-${data.kind || 'result'}${stamp ? '-' + stamp : ''}.json`},
      'Download the data (JSON)');
  button.href = URL.createObjectURL(new Blob([text], {type: 'application/json'}));
  return button;
}

function head(data, text) {
  const server = data.server || {};
  const device = known(server.device_name) ? server.device_name : server.device;
  const about = [
    data.kind === 'study' ? 'Study' : modeText(data.mode), device, server.address, startedText(data),
    seconds(data.seconds)
  ].filter((part) => known(part) && part !== DASH);
  const headline = headlineOf(data);
  const figures = data.kind === 'study' ? studyFigures(data) : runFigures(data);
  const found = list(data.findings).filter(known);
  document.title = `${headline} · tilewire-load`;
  document.getElementById('head').append(
      el('div', {class: 'topline'}, el('span', {class: 'brand'}, 'tilewire-load'), download(data, text)),
      el('p', {class: 'about'},
         about.flatMap(
             (part, index) => [index ? el('span', {class: 'dot'}, '·') : null, el('span', {}, part)])),
      el('h1', {}, headline), ...notes(data),
      el('dl', {class: `figures${figures.length === 8 ? ' eight' : ''}`},
         figures.map(
             ({label, value, note: small, state}) =>
                 el('div', {class: 'figure ' + state}, el('dt', {}, label), el('dd', {}, value),
                    el('dd', {class: 'small'}, small)))),
      data.recommendation && known(data.recommendation.text) ?
          el('p', {class: 'advice'}, el('strong', {}, 'Recommended: '), data.recommendation.text) :
          '',
      found.length ? el('ul', {class: 'findings'}, found.map((text_) => el('li', {}, text_))) : '');
}
