import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { endInPieces, PIECE_BYTES_MAX, STREAM_PIECE_BYTES_MAX, writeInPieces } from './pieces.ts'

/** Records the size of each write, and completes it one iteration of the event loop later. */
class Output extends Writable {
  readonly sizes: number[] = []
  readonly chunks: Buffer[] = []
  /** Writes that Node combined into one, because they came while another was in progress. */
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
  while (!output.writableFinished) await nextIteration()
}

for (const [what, body] of [
  ['bytes', Buffer.alloc(900_000, 'abc')],
  ['text', 'ä€x'.repeat(50_000)],
] as const) {
  test(`a body of ${what} is written in pieces that fit into a TLS record`, async () => {
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

test('a chunk of a stream is written in larger pieces, and done follows the last', async () => {
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

test('an output that is destroyed gets no further piece, and done is called', async () => {
  const output = new Output()
  const sent = Promise.withResolvers<void>()
  output.on('error', () => {})
  writeInPieces(output, Buffer.alloc(1_000_000), { done: () => sent.resolve() })
  output.destroy()
  await sent.promise
  assert.equal(output.sizes.length, 1)
})
