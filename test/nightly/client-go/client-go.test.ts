import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ADMIN_TOKEN, Replicas } from '../../support/replicas.ts'
import { buildProgram, runProgram, unformatted, whyNot } from './program.ts'

/** Fewer would mean that some cases were not run. */
const CASES_MIN = 200

for (const prefix of ['', '/clusters/prod-eu']) {
  test(`client-go: every case of the suite passes with server URL ${prefix || '/'}`, {
    skip: whyNot,
  }, async (t) => {
    await buildProgram()
    await using replicas = await Replicas.start(1)
    const server = replicas.server(0)
    const results = runProgram([
      `--server=https://127.0.0.1:${server.port}${prefix}`,
      `--ca=${join(server.folder, 'tidings.crt')}`,
      `--token=${ADMIN_TOKEN}`,
      'suite',
    ])
    let count = 0
    for await (const result of results) {
      const { name, error } = result as { readonly name: string; readonly error?: string }
      count += 1
      await t.test(name, () => assert.equal(error, undefined))
    }
    assert.ok(count >= CASES_MIN, `only ${count} cases`)
  })
}

test('the Go files here are formatted by gofmt', { skip: whyNot }, async () => {
  assert.equal(await unformatted(), '')
})
