/** Types the commands of docs/runbook/README.md, "Who is flooding us", as somebody on call. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { blocksOf } from '../../../tools/markdown.ts'
import { pageText, root } from '../../../tools/pages.ts'
import { SnippetServer } from '../../support/snippets.ts'
import { cannotFollow, kubectlBinary } from './follower.ts'

const COMMANDS_MS_MAX = 30_000
/** The controller that the section names. */
const CONTROLLER = 'looper'

/** The two fields that may name the controller of an event, keyed by message. */
const EVENTS: Readonly<Record<string, object>> = {
  'by its source only': { source: { component: CONTROLLER } },
  'by its controller only': { reportingComponent: CONTROLLER, reportingInstance: 'l-0' },
  'by both, which differ': {
    source: { component: 'old-name' },
    reportingComponent: CONTROLLER,
    reportingInstance: 'l-0',
  },
}

describe('the runbook', { skip: cannotFollow }, () => {
  test('who is flooding us: each command works for the group on-call, and shows the events', async () => {
    await using server = await SnippetServer.start([
      `--rbac-policy-path=${join(root, 'deploy/roles')}`,
    ])
    const home = server.env['HOME'] ?? ''
    await writeFile(join(home, 'events.json'), JSON.stringify(list()))
    await run(home, server.env, `${kubectlBinary} create -f events.json`)
    await onCall(join(home, 'bin'))
    const printed = await run(home, { ...server.env, PATH: `${home}/bin:/usr/bin:/bin` }, flood())
    assert.match(printed, new RegExp(`^ +${CONTROLLER} +3 `, 'm'))
    assert.match(printed, /^ +admin /m)
    for (const message of Object.keys(EVENTS)) assert.ok(printed.includes(message), printed)
  })
})

function flood(): string {
  const [, rest = ''] = pageText('docs/runbook/README.md').split('\n## Who is flooding us\n')
  const commands = blocksOf(rest.split(/^## /m)[0] ?? '').filter(
    ({ language }) => language === 'sh',
  )
  assert.ok(commands.length > 0)
  return commands.map(({ text }) => text).join('\n')
}

function list(): object {
  const items = Object.entries(EVENTS).map(([message, fields], index) => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `loop-${index}`, namespace: 'batch' },
    type: 'Warning',
    reason: 'Looping',
    message,
    involvedObject: { kind: 'Job', name: 'report', namespace: 'batch' },
    lastTimestamp: new Date().toISOString(),
    ...fields,
  }))
  return { apiVersion: 'v1', kind: 'List', items }
}

/** A kubectl that acts as a member of the group on-call, which deploy/roles gives its rights. */
async function onCall(folder: string): Promise<void> {
  await mkdir(folder)
  const script = `#!/bin/sh\nexec ${kubectlBinary} --as=oncall --as-group=on-call "$@"\n`
  await writeFile(join(folder, 'kubectl'), script, { mode: 0o755 })
}

async function run(
  cwd: string,
  env: Readonly<Record<string, string>>,
  commands: string,
): Promise<string> {
  const options = { cwd, env, timeout: COMMANDS_MS_MAX }
  const args = ['--norc', '-euo', 'pipefail', '-c', commands]
  return (await promisify(execFile)('bash', args, options)).stdout
}
