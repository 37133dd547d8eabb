import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { registerFileMetrics } from './files.ts'

describe('file metrics', () => {
  test('each flag has the outcome of the last poll, and the time of the last success', async () => {
    const registry = new Registry()
    let now = 1000_500
    const polls = registerFileMetrics(registry, () => now)
    const tokens = polls('--token-auth-file')
    polls('--client-ca-file', '--requestheader-client-ca-file')
    now = 2000_000
    tokens(true, true)
    now = 3000_000
    tokens(false, false)
    const shown = (await registry.metrics()).split('\n').filter((line) => /^[^#]/.test(line))
    assert.deepEqual(shown.sort(), [
      'tidings_file_last_reload_success_timestamp_seconds{flag="--client-ca-file"} 1000.5',
      'tidings_file_last_reload_success_timestamp_seconds{flag="--requestheader-client-ca-file"} 1000.5',
      'tidings_file_last_reload_success_timestamp_seconds{flag="--token-auth-file"} 2000',
      'tidings_file_last_reload_successful{flag="--client-ca-file"} 1',
      'tidings_file_last_reload_successful{flag="--requestheader-client-ca-file"} 1',
      'tidings_file_last_reload_successful{flag="--token-auth-file"} 0',
    ])
  })
})
