import assert from 'node:assert/strict'
import { test } from 'node:test'
import { askWithMemory } from './answer.ts'
import { ApiError } from './api-error.ts'
import type { Ask } from './client.ts'

/** Fails once with this error. */
function failing(code: number, message: string) {
  const asked: (string | undefined)[] = []
  const get = async <Result>(_path: string, { parameters = {} }: Ask = {}): Promise<Result> => {
    asked.push(parameters['resourceVersion'])
    if (asked.length === 1) throw new ApiError({ code, reason: '', message })
    return {} as Result
  }
  return { get, asked }
}

const NO_ETCD = 'the datastore cannot be reached; nothing was done'

test('asks for what the replica has in memory while etcd does not respond', async () => {
  const client = failing(503, NO_ETCD)
  assert.equal((await askWithMemory(client, 'events', {})).basis.isFromMemory, true)
  assert.deepEqual(client.asked, [undefined, '0'])
})

test('does not blame etcd when history cannot be read, nor read it twice', async () => {
  for (const code of [503, 504]) {
    const client = failing(code, 'history cannot be read now; nothing was done')
    await assert.rejects(askWithMemory(client, 'events', {}), { code })
    assert.deepEqual(client.asked, [undefined])
  }
})

test('continues a list only in the state in which it began', async () => {
  const client = failing(503, NO_ETCD)
  const parameters = { continue: 'token' }
  await assert.rejects(askWithMemory(client, 'events', { parameters }), { code: 503 })
})
