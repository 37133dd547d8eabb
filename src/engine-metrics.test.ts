import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import type { AnswerForm } from './codec/answer-form.ts'
import { KeptEntries } from './codec/kept-entries.ts'
import { watchKept } from './engine-metrics.ts'

test('metrics of kept lists: how much is kept, and how often it was of use', async () => {
  const registry = new Registry()
  const kept = new KeptEntries()
  watchKept(kept, registry)
  const form = { contentType: 'a' } as AnswerForm
  const run = { isPast: false }
  for (let list = 0; list < 2; list++) kept.add(form, run, Buffer.from('0123456789'))
  for (let list = 0; list < 3; list++) kept.find(form, run)
  const shown = (await registry.metrics()).split('\n').filter((line) => /^[^#]/.test(line))
  assert.deepEqual(shown, ['tidings_list_kept_bytes 10', 'tidings_list_kept_finds_total 3'])
})
