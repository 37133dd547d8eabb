import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { endInPieces, PIECE_BYTES_MAX, STREAM_PIECE_BYTES_MAX, writeInPieces } from './pieces.ts'

/** Notes the size of each write, and finishes it a turn of the event loop later. */
class Output extends Writable {
  readonly sizes: number[] = []
  readonly chunks: Buffer[] = []
  /** Writes that came while one was under way, which Node would hand over together. */
  gathered = 0

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.sizes.push(chunk.length)
    this.chunks.push(Buffer.from(chunk))
    setImmediate(done)
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.gathered += chunks.length
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), '', done)
  }
}

async function finished(output: Output): Promise<void> {
  while (!output.writableFinished) await turn()
}

for (const [what, body] of [
  ['bytes', Buffer.alloc(900_000, 'abc')],
  ['text', 'ä€x'.repeat(50_000)],
] as const) {
  test(`a body of ${what} is written in pieces, one after the other, none larger than a TLS record`, async () => {
    const output = new Output()
    endInPieces(output, body)
    await finished(output)
    assert.ok(Math.max(...output.sizes) <= PIECE_BYTES_MAX, String(Math.max(...output.sizes)))
    assert.equal(output.gathered, 0)
    assert.deepEqual(Buffer.concat(output.chunks), Buffer.from(body))
  })
}

test('a body of one piece is written at once', async () => {
  const output = new Output()
  endInPieces(output, Buffer.alloc(PIECE_BYTES_MAX))
  assert.deepEqual(output.sizes, [PIECE_BYTES_MAX])
  await finished(output)
})

test('part of a stream is written in larger pieces, and the end of the last is reported', async () => {
  const output = new Output()
  let pieces = 0
  const sent = Promise.withResolvers<void>()
  writeInPieces(output, Buffer.alloc(200_000), {
    onPiece: () => {
      pieces += 1
    },
    done: () => sent.resolve(),
  })
  await sent.promise
  assert.equal(output.writableLength, 0)
  assert.equal(pieces, 3)
  assert.deepEqual(
    output.sizes,
    [1, 1, 1].map(() => STREAM_PIECE_BYTES_MAX).concat(200_000 - 3 * STREAM_PIECE_BYTES_MAX),
  )
})

test('an output that is destroyed halfway gets no further piece, and the writer is told', async () => {
  const output = new Output()
  const sent = Promise.withResolvers<void>()
  output.on('error', () => {})
  writeInPieces(output, Buffer.alloc(1_000_000), { done: () => sent.resolve() })
  output.destroy()
  await sent.promise
  assert.equal(output.sizes.length, 1)
})
