/**
 * Skips over JSON tokens in bytes without parsing them. Meant for the output of a JSON encoder: it
 * never reads past the end, but it does not validate. For invalid JSON the result is meaningless.
 */

const quote = 0x22
const backslash = 0x5c

/** The offset of the first byte at or after `from` that is not white space. */
export function skipWhite(bytes: Uint8Array, from: number): number {
  let at = from
  for (;;) {
    const byte = bytes[at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at
    at++
  }
}

/** The offset just after the value that begins at `from`. */
export function skipValue(bytes: Uint8Array, from: number): number {
  const byte = bytes[from]
  if (byte === quote) return skipString(bytes, from)
  if (isOpening(byte)) return skipNested(bytes, from)
  let at = from
  while (at < bytes.length && !endsScalar(bytes[at])) at++
  return at
}

function skipString(bytes: Uint8Array, from: number): number {
  for (let at = from + 1; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === quote) return at + 1
    if (byte === backslash) at++
  }
  return bytes.length
}

function skipNested(bytes: Uint8Array, from: number): number {
  let depth = 0
  let at = from
  while (at < bytes.length) {
    const byte = bytes[at]
    if (byte === quote) {
      at = skipString(bytes, at)
      continue
    }
    at++
    if (isOpening(byte)) depth++
    else if (isClosing(byte)) depth--
    if (depth === 0) return at
  }
  return bytes.length
}

function isOpening(byte: number | undefined): boolean {
  return byte === 0x7b || byte === 0x5b
}

function isClosing(byte: number | undefined): boolean {
  return byte === 0x7d || byte === 0x5d
}

/** A comma, white space or a closing bracket. */
function endsScalar(byte: number | undefined): boolean {
  return (
    byte === 0x2c ||
    byte === 0x20 ||
    byte === 0x0a ||
    byte === 0x0d ||
    byte === 0x09 ||
    isClosing(byte)
  )
}
