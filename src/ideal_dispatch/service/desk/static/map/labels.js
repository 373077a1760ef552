// Where words fit on the map: beside their marks, covering nothing.

const SIDES = { below: [0, 1], above: [0, -1], right: [1, 0], left: [-1, 0] };

const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

/** The box of words of a size, so far from the middle of their mark on one side. */
function beside({ x, y, width, height, gap }, side) {
  const [right, down] = SIDES[side];
  const left = x - width / 2 + right * (gap + width / 2);
  const top = y - height / 2 + down * (gap + height / 2);
  return [left, top, left + width, top + height];
}

/** The first side where the words lie in a frame of [width, height] and cover nothing `taken`, or null. */
export function placed(label, sides, taken, [width, height]) {
  for (const side of sides) {
    const box = beside(label, side);
    const inside = box[0] >= 0 && box[1] >= 0 && box[2] <= width && box[3] <= height;
    if (!inside || taken.some((other) => overlap(box, other))) continue;
    return { side, box };
  }
  return null;
}
