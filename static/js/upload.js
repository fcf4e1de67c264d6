// Makes forms with data-upload show how far their files are, take what is dropped
// on them, and take whole folders. Without it they are plain forms.

for (const form of document.querySelectorAll("form[data-upload]")) enhance(form);

function enhance(form) {
  const zone = form.querySelector("[data-drop]");
  const input = zone.querySelector("input[type=file]");
  const status = form.querySelector("[data-upload-status]");
  const chosen = { files: [] };

  form.querySelector("[data-drop-hint]").textContent = ", or drop a ZIP or a folder here";

  const folder = document.createElement("button");
  folder.type = "button";
  folder.textContent = "Choose a folder";
  folder.addEventListener("click", () => {
    const picker = document.createElement("input");
    picker.type = "file";
    picker.webkitdirectory = true;
    picker.addEventListener("change", () => {
      choose([...picker.files].map((file) => ({ file, path: file.webkitRelativePath || file.name })));
    });
    picker.click();
  });
  input.after(folder);

  input.addEventListener("change", () => {
    choose([...input.files].map((file) => ({ file, path: file.name })));
  });
  for (const type of ["dragenter", "dragover"]) {
    zone.addEventListener(type, (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
  }
  for (const type of ["dragleave", "drop"]) {
    zone.addEventListener(type, () => zone.classList.remove("over"));
  }
  zone.addEventListener("drop", async (event) => {
    event.preventDefault();
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    choose((await Promise.all(entries.map(walk))).flat());
  });

  function choose(files) {
    chosen.files = files.filter(({ path }) => /\.(zip|png|jpe?g|gif|webp|bmp|tiff?)$/i.test(path));
    const bytes = chosen.files.reduce((sum, { file }) => sum + file.size, 0);
    status.textContent = chosen.files.length
      ? `${chosen.files.length === 1 ? chosen.files[0].path : `${chosen.files.length} files`}, ${size(bytes)}`
      : "None of these is a ZIP or an image.";
  }

  form.addEventListener("submit", (event) => {
    if (!chosen.files.length && !input.files.length) return; // nothing to show the progress of
    event.preventDefault();
    send(form, chosen.files, status);
  });
}

// walk lists the files under what was dropped, with their folders.
async function walk(entry) {
  const path = entry.fullPath.replace(/^\//, "");
  if (entry.isFile) {
    return [{ file: await new Promise((ok, bad) => entry.file(ok, bad)), path }];
  }
  const reader = entry.createReader();
  const all = [];
  for (;;) {
    const some = await new Promise((ok, bad) => reader.readEntries(ok, bad));
    if (!some.length) break;
    for (const child of some) all.push(...(await walk(child)));
  }
  return all;
}

function send(form, files, status) {
  const data = new FormData();
  for (const [name, value] of new FormData(form)) {
    if (name !== "files") data.append(name, value);
  }
  for (const { file, path } of files) data.append("files", file, path);

  const bar = form.querySelector("[data-upload-progress]");
  const buttons = form.querySelectorAll("button");
  const began = performance.now();
  const request = new XMLHttpRequest();
  request.open("POST", form.action);
  request.setRequestHeader("Accept", "application/json");
  request.responseType = "json";
  bar.hidden = false;
  for (const button of buttons) button.disabled = true;

  request.upload.addEventListener("progress", (event) => {
    if (!event.lengthComputable) return;
    bar.value = event.loaded / event.total;
    const left = ((performance.now() - began) / 1000) * (event.total / event.loaded - 1);
    status.textContent =
      event.loaded === event.total
        ? "Uploaded. Reading the images."
        : `${size(event.loaded)} of ${size(event.total)}${left > 2 ? `, ${duration(left)} left` : ""}`;
  });
  request.addEventListener("load", () => {
    if (request.status === 201 && request.response) {
      location.assign(request.response.location);
      return;
    }
    fail(request.response?.detail ?? "The upload was refused. Nothing was kept; try again.");
  });
  request.addEventListener("error", () => {
    fail("The connection was lost. Nothing was kept; send it again.");
  });
  request.send(data);

  function fail(message) {
    bar.hidden = true;
    status.textContent = "";
    for (const button of buttons) button.disabled = false;
    const notice = document.createElement("div");
    notice.className = "notice bad";
    notice.setAttribute("role", "alert");
    const p = document.createElement("p");
    p.textContent = message;
    notice.append(p);
    const place = form.querySelector("[data-upload-error]");
    place.replaceChildren(notice);
    place.scrollIntoView({ block: "nearest" });
  }
}

function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB"];
  let i = 0;
  while (bytes >= 1000 && i < units.length - 1) {
    bytes /= 1000;
    i++;
  }
  return `${i ? bytes.toFixed(1) : bytes} ${units[i]}`;
}

function duration(seconds) {
  return seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`;
}
