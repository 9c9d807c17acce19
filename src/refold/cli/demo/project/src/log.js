// One line for each thing that happened.

/** Writes a line: the time, how bad it is, what happened, and the rest as name=value. */
export function log(level, what, more = {}) {
  const time = new Date().toTimeString().slice(0, 8);
  const rest = Object.entries(more).map(([name, value]) => `${name}=${value}`);
  console.log([time, level.toUpperCase().padEnd(5), what, ...rest].join(" "));
}
