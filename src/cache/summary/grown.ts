/** A larger array with the same beginning; returns `target`. */
export function grown<Numbers extends Uint8Array | Uint32Array | Float64Array>(
  numbers: Numbers,
  target: Numbers,
): Numbers {
  target.set(numbers)
  return target
}
