/** The parts of PNG files. */
import { crc32 } from 'node:zlib'

export const SIGNATURE: Buffer = Buffer.from('89504e470d0a1a0a', 'hex')
/** The length and the type before the data of a chunk, and the checksum behind it. */
const HEAD_BYTES = 8
const CHECKSUM_BYTES = 4
/** The length of IEND, which is the last chunk and has no data. */
const END_BYTES = HEAD_BYTES + CHECKSUM_BYTES
const TEXT = 'tEXt'
const KEYWORD = 'Description\0'

export interface Chunk {
  readonly type: string
  readonly data: Buffer
}

export function chunk(type: string, data: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  const checksum = Buffer.alloc(CHECKSUM_BYTES)
  checksum.writeUInt32BE(crc32(typed))
  return Buffer.concat([length, typed, checksum])
}

export function chunksOf(png: Buffer): readonly Chunk[] {
  const chunks: Chunk[] = []
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at)
    const start = at + HEAD_BYTES
    const type = png.toString('latin1', at + 4, start)
    chunks.push({ type, data: png.subarray(start, start + length) })
    at = start + length + CHECKSUM_BYTES
  }
  return chunks
}

export function sizeOf(png: Buffer): { readonly width: number; readonly height: number } {
  const at = SIGNATURE.length + HEAD_BYTES
  return { width: png.readUInt32BE(at), height: png.readUInt32BE(at + 4) }
}

/** The picture with a text of ASCII, which viewers do not show: what the picture was taken of. */
export function withText(png: Buffer, text: string): Buffer {
  const at = png.length - END_BYTES
  const added = chunk(TEXT, Buffer.from(`${KEYWORD}${text}`, 'latin1'))
  return Buffer.concat([png.subarray(0, at), added, png.subarray(at)])
}

/** Empty for a picture without text. */
export function textOf(png: Buffer): string {
  const found = chunksOf(png).find(({ type }) => type === TEXT)
  return found?.data.toString('latin1').replace(KEYWORD, '') ?? ''
}
