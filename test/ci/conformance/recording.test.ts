import assert from 'node:assert/strict'
import { test } from 'node:test'
import { normalText, normalTree } from './normal-form.ts'
import { type Expected, loadRecording, SUITES } from './recording.ts'

const PLACE = { namespace: 'a namespace that no recording mentions' }

test('recordings are in normal form, so that expected responses can be read as they are', () => {
  for (const suite of SUITES) {
    for (const [index, step] of loadRecording(suite).steps.entries()) {
      const at = `${suite}[${index}]`
      assertNormal(step.answer, at)
      if (step.ours !== undefined) assertNormal(step.ours.answer, at)
    }
  }
})

function assertNormal({ json, yaml, frames = [], text = '' }: Expected, at: string): void {
  for (const tree of [json ?? {}, yaml ?? {}, ...frames]) {
    assert.deepEqual(normalTree(tree, PLACE), tree, at)
  }
  assert.equal(normalText(text, PLACE), text, at)
}

test('a recording is named like its file, and each name it uses was saved before', () => {
  for (const suite of SUITES) {
    const recording = loadRecording(suite)
    assert.equal(recording.suite, suite)
    const known = new Set(['ns'])
    for (const [index, step] of recording.steps.entries()) {
      const sent = JSON.stringify([step.path, step.headers, step.body, step.raw])
      for (const [, name = ''] of sent.matchAll(/@\{(\w+)\}/g)) {
        assert.ok(known.has(name), `${suite}[${index}] uses ${name}`)
      }
      for (const name of Object.keys(step.save ?? {})) known.add(name)
    }
  }
})

test('another group replaces events.k8s.io everywhere', () => {
  const text = JSON.stringify(loadRecording('discovery', 'events.example.dev'))
  assert.ok(text.includes('/apis/events.example.dev/v1'))
  assert.ok(!text.includes('events.k8s.io'))
})
