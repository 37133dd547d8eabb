/** Replaces `node:crypto` in the simulation: the same, but random values come from the process. */
import real from 'node:crypto'
import { needProcess } from './interception.ts'

export function randomFillSync<View extends NodeJS.ArrayBufferView>(view: View): View {
  const { random } = needProcess('crypto')
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
  for (let index = 0; index < bytes.length; index++) bytes[index] = random.below(256)
  return view
}

export function randomBytes(size: number): Buffer {
  return randomFillSync(Buffer.alloc(size))
}

export function randomUUID(): string {
  const { random } = needProcess('crypto')
  let digits = ''
  for (let group = 0; group < 4; group++) {
    digits += random
      .below(2 ** 32)
      .toString(16)
      .padStart(8, '0')
  }
  const [a, b, c, d, e] = [0, 8, 12, 16, 20].map((start, index) =>
    digits.slice(start, [8, 12, 16, 20, 32][index]),
  )
  return `${a}-${b}-4${c?.slice(1)}-8${d?.slice(1)}-${e}`
}

export const createHash: typeof real.createHash = real.createHash
export const hash: typeof real.hash = real.hash
export const timingSafeEqual: typeof real.timingSafeEqual = real.timingSafeEqual
export const X509Certificate: typeof real.X509Certificate = real.X509Certificate
