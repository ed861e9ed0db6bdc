// Search: text in, matching functions and the weight of the stacks they are on out.

/// The text as a test on functions: a part of the name, whatever the case, or a regular expression. After
/// `module:` it is the module's path that is looked at. Null for no text; throws for a broken expression.
export function compile(text, isRegex) {
  const inModule = text.startsWith("module:");
  const wanted = inModule ? text.slice("module:".length) : text;
  if (wanted === "") return null;
  const field = inModule ? "module" : "name";
  if (isRegex) {
    const regex = new RegExp(wanted, "iu");
    return (fn) => regex.test(fn[field]);
  }
  const lower = wanted.toLowerCase();
  return (fn) => fn[field].toLowerCase().includes(lower);
}

/// By function: 1 if it matches.
export function matching(functions, test) {
  return Uint8Array.from(functions, (fn) => (test(fn) ? 1 : 0));
}

/// The weight of all samples with a match anywhere on their stack.
export function matchedWeight({ nodes }, weights, matches) {
  const under = new Uint8Array(nodes.count);
  let sum = 0;
  for (let i = 1; i < nodes.count; i++) {
    under[i] = under[nodes.parent[i]] | matches[nodes.function[i]];
    if (under[i] === 1) sum += weights.self[i];
  }
  return sum;
}

/// A regular expression that matches exactly `name`.
export function exactly(name) {
  return `^${name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")}$`;
}
