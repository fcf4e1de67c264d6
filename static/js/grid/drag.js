// Dragging a rectangle over the tiles picks them out; from a tile that is picked it
// puts them back. A mouse or a pen draws; a finger scrolls.

const THRESHOLD = 6; // pixels before a press is a drag

export function dragToPick(area, marquee, tiles) {
  let start = null; // {x, y, on, before}, in the area's content

  const at = (event) => {
    const box = area.getBoundingClientRect();
    return { x: event.clientX - box.left + area.scrollLeft, y: event.clientY - box.top + area.scrollTop };
  };

  area.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" || event.button !== 0 || event.shiftKey) return;
    if (event.offsetX > area.clientWidth && event.target === area) return; // the scroll bar
    start = { ...at(event), on: !tiles.list[tiles.indexOf(event.target)]?.picked, before: null };
  });

  area.addEventListener("pointermove", (event) => {
    if (!start) return;
    const end = at(event);
    if (!start.before) {
      if (Math.hypot(end.x - start.x, end.y - start.y) < THRESHOLD) return;
      start.before = tiles.list.map((t) => t.picked);
      area.setPointerCapture(event.pointerId);
    }
    const rectangle = {
      left: Math.min(start.x, end.x),
      top: Math.min(start.y, end.y),
      right: Math.max(start.x, end.x),
      bottom: Math.max(start.y, end.y),
    };
    draw(marquee, rectangle);
    const inside = tiles.list.map((t) => overlaps(t.node, rectangle));
    const wanted = (i) => (inside[i] ? start.on : start.before[i]);
    tiles.pick(tiles.list.filter((_, i) => wanted(i)), true);
    tiles.pick(tiles.list.filter((_, i) => !wanted(i)), false);
  });

  const end = () => {
    // The click that follows the drag would toggle the tile under it.
    if (start?.before) addEventListener("click", swallow, { capture: true, once: true });
    setTimeout(() => removeEventListener("click", swallow, { capture: true }));
    start = null;
    marquee.hidden = true;
  };
  area.addEventListener("pointerup", end);
  area.addEventListener("pointercancel", end);
}

function swallow(event) {
  event.preventDefault();
  event.stopPropagation();
}

function draw(marquee, { left, top, right, bottom }) {
  marquee.hidden = false;
  Object.assign(marquee.style, {
    left: `${left}px`,
    top: `${top}px`,
    width: `${right - left}px`,
    height: `${bottom - top}px`,
  });
}

function overlaps(node, { left, top, right, bottom }) {
  return (
    node.offsetLeft < right &&
    node.offsetLeft + node.offsetWidth > left &&
    node.offsetTop < bottom &&
    node.offsetTop + node.offsetHeight > top
  );
}
