import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { applyJsonPatch, readJsonPatch } from '../../../src/registry/patch/json-patch.ts'
import { inputAt } from '../../nightly/fuzz/generators/generate.ts'
import { readInput, writeInput } from '../../nightly/fuzz/input.ts'
import { wrongWith } from '../../nightly/fuzz/judge.ts'
import { CannotPatch, modelJsonPatch, modelMergePatch } from '../../nightly/fuzz/models.ts'
import { testSeed } from '../../support/seed.ts'

/** One in 200 of these, and every huge one, also goes through sockets. */
const INPUTS = 10_000

test('fuzz: no input breaks the server, in process or through sockets', async (t) => {
  const child = spawn(
    execPath,
    [
      join(import.meta.dirname, '../../nightly/fuzz/run.ts'),
      '--count',
      String(INPUTS),
      '--seed',
      String(testSeed()),
      '--slowest',
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  const chunks: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  }
  const [code] = await once(child, 'close')
  const printed = Buffer.concat(chunks).toString()
  assert.equal(code, 0, printed)
  for (const line of printed.trim().split('\n')) t.diagnostic(line)
})

describe('the fuzzer itself', () => {
  test('inputs: the same seed and number make the same input', () => {
    for (let index = 0; index < 500; index++) {
      assert.deepEqual(inputAt({ seed: 5 }, index), inputAt({ seed: 5 }, index))
    }
    assert.notDeepEqual(inputAt({ seed: 5 }, 1), inputAt({ seed: 6 }, 1))
  })

  test('inputs: a saved input is read back unchanged', () => {
    for (let index = 0; index < 200; index++) {
      const input = inputAt({ seed: 9 }, index)
      assert.deepEqual(readInput(writeInput(input)), input)
    }
  })

  test('judge: responses that no server may send are found', () => {
    const ask = { method: 'GET', target: '/', headers: {}, body: Buffer.alloc(0) }
    const json = { 'content-type': 'application/json' }
    const answer = (status: number, body: unknown, headers: Record<string, string> = json) =>
      wrongWith(ask, { status, headers, body: Buffer.from(JSON.stringify(body)) })
    const failure = { kind: 'Status', apiVersion: 'v1', status: 'Failure', message: 'no' }
    const notFound = { ...failure, reason: 'NotFound', code: 404 }

    assert.deepEqual(answer(404, notFound), [])
    assert.deepEqual(answer(200, { kind: 'Event', apiVersion: 'events.k8s.io/v1' }), [])
    assert.match(answer(500, { ...failure, code: 500 }).join(), /status 500/)
    assert.match(answer(404, { ...notFound, code: 400 }).join(), /code 400/)
    assert.match(answer(404, { ...notFound, reason: 'Gone' }).join(), /reason Gone/)
    assert.match(answer(404, { ...notFound, message: 'x'.repeat(300_000) }).join(), /a refusal of/)
    assert.match(answer(200, { kind: 'Pod' }).join(), /kind Pod/)
    assert.match(answer(404, notFound, { ...json, warning: 'a\nb' }).join(), /header warning/)
    assert.match(
      answer(404, notFound, { ...json, warning: 'a'.repeat(17_000) }).join(),
      /headers of/,
    )
    assert.match(answer(404, notFound, { 'content-type': 'text/html' }).join(), /content type/)
  })

  test('models: merge patches follow the RFC', () => {
    assert.deepEqual(modelMergePatch({ a: 'b' }, { a: 'c' }), { a: 'c' })
    assert.deepEqual(modelMergePatch({ a: [{ b: 'c' }] }, { a: [1] }), { a: [1] })
    assert.deepEqual(modelMergePatch({}, { a: { bb: { ccc: null } } }), { a: { bb: {} } })
    assert.deepEqual(modelMergePatch({ e: null }, { a: 1 }), { e: null, a: 1 })
  })

  test('models: JSON patches are applied as the server does', () => {
    const document = { a: { b: 1 }, c: [1, 2, 3] }
    const place = fc.constantFrom('/a', '/a/b', '/c', '/c/0', '/c/-', '/c/-1', '/c/9', '/x', '')
    const operation = fc.record({
      op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test'),
      path: place,
      from: place,
      value: fc.constantFrom(1, 'x', null, {}),
    })
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 5 }), (patch) => {
        assert.deepEqual(
          outcome(() => applyJsonPatch(document, readJsonPatch(patch))),
          outcome(() => modelJsonPatch(document, patch)),
        )
      }),
      { numRuns: 2000 },
    )
  })
})

/** The result, or that the patch cannot be applied. */
function outcome(make: () => unknown): unknown {
  try {
    return make()
  } catch (error) {
    if (error instanceof CannotPatch || (error instanceof Error && error.name === 'PatchError')) {
      return 'cannot'
    }
    throw error
  }
}
