/**
 * Makes a screenshot small: a page has few colours, so that one byte for each pixel is enough, and
 * the browser compresses in a hurry.
 */
import { deflateSync, inflateSync } from 'node:zlib'
import { chunk, chunksOf, SIGNATURE, sizeOf } from './png-chunks.ts'

const COLOURS_MAX = 256
const TRUECOLOUR = 2
const TRUECOLOUR_WITH_ALPHA = 6
const INDEXED = 3

/** The picture with its 256 most frequent colours; other pixels get the nearest of these. */
export function smallPng(png: Buffer): Buffer {
  const { width, height } = sizeOf(png)
  const colours = pixelsOf(png)
  const palette = frequentOf(colours)
  const indexes = new Map(palette.map((colour, index) => [colour, index]))
  // A byte before each row says that it is not filtered.
  const rows = Buffer.alloc((width + 1) * height)
  for (const [at, colour] of colours.entries()) {
    const index = indexes.get(colour) ?? nearest(palette, colour)
    indexes.set(colour, index)
    rows[Math.floor(at / width) * (width + 1) + 1 + (at % width)] = index
  }
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, INDEXED, 0, 0, 0], 8)
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', head),
    chunk('PLTE', Buffer.from(palette.flatMap(partsOf))),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** One number of red, green and blue for each pixel, row by row. */
function pixelsOf(png: Buffer): Uint32Array {
  const { width, height } = sizeOf(png)
  const chunks = chunksOf(png)
  const [depth, kind, , , interlace] =
    chunks.find(({ type }) => type === 'IHDR')?.data.subarray(8) ?? []
  const bytes = kind === TRUECOLOUR_WITH_ALPHA ? 4 : 3
  if (depth !== 8 || (kind !== TRUECOLOUR && kind !== TRUECOLOUR_WITH_ALPHA) || interlace !== 0) {
    throw new Error('this is not how the browser writes pictures')
  }
  const data = chunks.filter(({ type }) => type === 'IDAT').map((one) => one.data)
  const lines = inflateSync(Buffer.concat(data))
  const pixels = new Uint32Array(width * height)
  let before = Buffer.alloc(width * bytes)
  for (let row = 0; row < height; row++) {
    const start = row * (width * bytes + 1)
    const line = lines.subarray(start + 1, start + 1 + width * bytes)
    unfilter(lines[start] ?? 0, { line, before, bytes })
    for (let column = 0; column < width; column++) {
      pixels[row * width + column] = line.readUIntBE(column * bytes, 3)
    }
    before = line
  }
  return pixels
}

interface Line {
  readonly line: Buffer
  readonly before: Buffer
  /** The size of one pixel. */
  readonly bytes: number
}

/** Undoes a filter of PNG in place: a byte is the difference from what is to its left and above. */
function unfilter(filter: number, { line, before, bytes }: Line): void {
  for (let at = 0; at < line.length; at++) {
    const left = at < bytes ? 0 : (line[at - bytes] ?? 0)
    const above = before[at] ?? 0
    const corner = at < bytes ? 0 : (before[at - bytes] ?? 0)
    const expected = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter] ?? 0
    line[at] = (line[at] ?? 0) + expected
  }
}

function paeth(left: number, above: number, corner: number): number {
  const guess = left + above - corner
  const [a, b, c] = [left, above, corner].map((value) => Math.abs(guess - value)) as [
    number,
    number,
    number,
  ]
  if (a <= b && a <= c) return left
  return b <= c ? above : corner
}

function frequentOf(colours: Uint32Array): readonly number[] {
  const counts = new Map<number, number>()
  for (const colour of colours) counts.set(colour, (counts.get(colour) ?? 0) + 1)
  const sorted = [...counts].sort(([one, a], [other, b]) => b - a || one - other)
  return sorted.slice(0, COLOURS_MAX).map(([colour]) => colour)
}

function nearest(palette: readonly number[], colour: number): number {
  const distances = palette.map((one) => distance(partsOf(one), partsOf(colour)))
  return distances.indexOf(Math.min(...distances))
}

function distance(one: readonly number[], other: readonly number[]): number {
  return one.reduce((sum, part, index) => sum + (part - (other[index] ?? 0)) ** 2, 0)
}

function partsOf(colour: number): readonly number[] {
  return [colour >> 16, (colour >> 8) & 0xff, colour & 0xff]
}
