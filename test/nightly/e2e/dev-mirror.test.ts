/** `tidings dev --mirror`, with another `tidings dev` as the cluster of the user's kubeconfig. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type DevServer, startDev } from '../../support/dev-server.ts'
import { eventually } from '../../support/eventually.ts'
import { findKubectl, RECORDED_WITH, whyNot } from '../kubectl/kubectl.ts'

const events = join(import.meta.dirname, '../kubectl/events.yaml')

describe('tidings dev --mirror', { skip: whyNot(RECORDED_WITH) }, () => {
  const kubectl = (kubeconfig: string, ...args: readonly string[]): string =>
    execFileSync(findKubectl(RECORDED_WITH) ?? '', ['--kubeconfig', kubeconfig, ...args], {
      encoding: 'utf8',
    })
  let folder: string
  let origin: DevServer
  let originConfig: string
  let userConfig: string
  const running: DevServer[] = []

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-dev-mirror-'))
    origin = await startDev()
    running.push(origin)
    originConfig = join(origin.folder, 'kubeconfig')
    // Cloud providers write it like this: the token comes from a program.
    const config = JSON.parse(await readFile(originConfig, 'utf8'))
    const { token } = config.users[0].user
    await writeFile(join(folder, 'plugin'), `#!/bin/sh\necho '{"status":{"token":"${token}"}}'\n`)
    await chmod(join(folder, 'plugin'), 0o700)
    config.users[0].user = { exec: { command: './plugin' } }
    config.contexts[0].name = 'arn:aws:eks:eu-west-1:1234:cluster/Prod'
    config['current-context'] = 'somewhere-else'
    userConfig = join(folder, 'config')
    await writeFile(userConfig, JSON.stringify(config))
    kubectl(originConfig, 'create', '-f', events)
  })
  after(async () => {
    for (const { child } of running) {
      if (child.exitCode === null) child.kill('SIGKILL')
    }
    await rm(folder, { recursive: true, force: true })
  })

  const start = async (): Promise<DevServer> => {
    const dataDir = join(folder, 'data')
    const context = '--context=arn:aws:eks:eu-west-1:1234:cluster/Prod'
    const dev = await startDev(['--mirror', context, `--data-dir=${dataDir}`], {
      KUBECONFIG: userConfig,
    })
    running.push(dev)
    return dev
  }

  test("the events of the user's cluster are served, and the printed commands work", async () => {
    const dev = await start()
    assert.ok(dev.lines.some((line) => /as cluster prod:$/.test(line)))
    const printed = dev.lines.filter(
      (line) => line.includes('--kubeconfig') && !line.includes('--watch'),
    )
    assert.ok(printed.length >= 3)
    const own = join(dev.folder, 'kubeconfig')
    await eventually(
      'the events are mirrored',
      () => kubectl(own, 'get', 'events', '-A').includes('BackOff'),
      30_000,
    )
    for (const line of printed) {
      const [, ...args] = line.trim().split(' ')
      assert.doesNotThrow(() => execFileSync(findKubectl(RECORDED_WITH) ?? '', args))
    }
    kubectl(originConfig, 'delete', '-f', events)
    dev.child.kill('SIGINT')
    const [code] = await once(dev.child, 'exit')
    assert.equal(code, 0)
  })

  test('with --data-dir the events are there at the next start, also those that the cluster deleted', async () => {
    const dev = await start()
    const own = join(dev.folder, 'kubeconfig')
    assert.match(kubectl(own, 'get', 'events', '-A'), /BackOff/)
    dev.child.kill('SIGINT')
    await once(dev.child, 'exit')
  })

  test('an unknown context ends the program with an error that lists the known ones', async () => {
    await assert.rejects(
      startDev(['--mirror', '--context=nope'], { KUBECONFIG: userConfig }),
      /no context .*nope.*it has: arn:aws/,
    )
  })
})
