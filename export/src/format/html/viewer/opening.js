// A page of another recording: a file that someone chose or dropped in, its profile out.

import { decodeProfile } from "./decode.js";

// Written so that it does not find itself in a page.
const OPENS = /octet-stream;base64" id="profile"\s*>/;
const LARGEST_FILE = 2 ** 29;

/// The profile in a page that Collector wrote; throws with what is wrong with it.
export async function openPage(file) {
  if (file.size > LARGEST_FILE) throw new Error("it is larger than 512 MiB");
  const text = await file.text();
  const opens = OPENS.exec(text);
  if (opens === null) throw new Error("it is no HTML page of Collector's: there is no profile in it");
  const start = opens.index + opens[0].length;
  // Base64 has no such character.
  const end = text.indexOf("<", start);
  if (end < 0) throw new Error("its end is missing");
  let profile;
  try {
    profile = await decodeProfile(text.slice(start, end));
  } catch (error) {
    throw new Error(`its profile can't be read: ${error.message}`, { cause: error });
  }
  if (profile.samples.count === 0) throw new Error("it has no samples");
  return profile;
}

/// Calls `opened(file)` with a file that the button lets one choose, or that is dropped on the page.
export function listenForFiles(button, input, opened) {
  button.addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    const [file] = input.files;
    if (file) opened(file);
    // Choosing the same file again is a choice, too.
    input.value = "";
  });
  const carriesFile = (event) => event.dataTransfer?.types.includes("Files");
  const mark = (over) => document.body.classList.toggle("dropping", over);
  addEventListener("dragover", (event) => {
    if (!carriesFile(event)) return;
    event.preventDefault();
    mark(true);
  });
  addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) mark(false);
  });
  addEventListener("drop", (event) => {
    mark(false);
    if (!carriesFile(event)) return;
    event.preventDefault();
    const [file] = event.dataTransfer.files;
    if (file) opened(file);
  });
}
