// A file for speedscope, by the schema of such files: `node speedscope_file.mjs FILE`. Out: JSON, with the frames of each sample.

import { ok } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileOf, load } from "./browser.mjs";

const file = JSON.parse(readFileSync(process.argv[2], "utf8"));
const schema = JSON.parse(readFileSync(fileOf("speedscope", "dist/release/file-format-schema.json"), "utf8"));
const validate = new (load("ajv").default)({ strict: false, validateFormats: false }).compile(schema);
ok(validate(file), JSON.stringify(validate.errors));

const profiles = file.profiles.map(({ name, unit, samples, weights }) => ({
  name,
  unit,
  samples: samples.map((stack, at) => ({ stack: stack.map((frame) => file.shared.frames[frame]), weight: weights[at] })),
}));
console.log(JSON.stringify({ name: file.name, exporter: file.exporter, profiles }));
