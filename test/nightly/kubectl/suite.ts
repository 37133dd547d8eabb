import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { KubectlSession, whyNot } from './kubectl.ts'
import { type Exchange, normalOutput, parseTranscript } from './transcript.ts'

/** Texts of kubectl itself that differ from the recording in releases before or after some minor. */
const CLIENT_WORDS: readonly {
  readonly isIn: (minor: number) => boolean
  readonly recorded: RegExp
  readonly printed: string
}[] = [
  {
    isIn: (minor) => minor > 36,
    recorded: /(have a resource type "events")$/gm,
    printed: '$1 in group "v1beta1.events.k8s.io"',
  },
  { isIn: (minor) => minor < 34, recorded: /(" deleted) from \w+ namespace/g, printed: '$1' },
  { isIn: (minor) => minor < 30, recorded: /^(FIELD: .*\n\n)\n/gm, printed: '$1' },
  { isIn: (minor) => minor < 28, recorded: / annotated$/gm, printed: ' annotate' },
]

const read = (name: string): readonly Exchange[] =>
  parseTranscript(readFileSync(join(import.meta.dirname, name), 'utf8'))

const recorded = read('recorded.txt')
const additional = read('additional.txt')
/** Where we differ from the recording on purpose; the remark is the id in docs/reference/compatibility.md. */
export const differences: readonly Exchange[] = read('differences.txt')

/** All tests for one release of kubectl, such as `1.36`, with a path in the server's URL. */
export function kubectlSuite(version: string, prefix = ''): void {
  const cluster = prefix.split('/').at(-1)
  describe(`kubectl ${version} ${prefix}`, { skip: whyNot(version) }, () => {
    test('kubectl prints what it prints with Kubernetes, except for the listed differences', async (t) => {
      await using session = await KubectlSession.start(version, prefix)
      for (const exchange of recorded) {
        const ours = differences.find(({ command }) => command === exchange.command)
        await play(t, session, ours ?? exchange)
      }
      for (const exchange of additional) await play(t, session, exchange)
    })

    test('watches of kubectl print changes as they happen', async () => {
      await using session = await KubectlSession.start(version, prefix)
      await session.run('kubectl create -f events.yaml')
      await using table = session.start('kubectl get events -w')
      await using changes = session.start(
        'kubectl get events.v1.events.k8s.io -A -w --output-watch-events',
      )
      await using events = session.start('kubectl events -w')
      await using warnings = session.start('kubectl events --for pod/web-0 --types=Warning -w')
      await Promise.all([
        table.printed(3),
        changes.printed(3),
        events.printed(3),
        warnings.printed(2),
      ])
      // Each prints the existing events first and then watches for changes after them, so none can
      // be missed.
      await session.run('kubectl label events.v1.events.k8s.io web-0.backoff c=d')
      await Promise.all([
        table.printed(4),
        changes.printed(4),
        events.printed(4),
        warnings.printed(3),
      ])
      await session.run('kubectl delete event web-0.backoff')
      await Promise.all([table.printed(5), changes.printed(5)])

      const backOff = 'pod/web-0  17  Back-off restarting failed container'
      const scheduled = 'pod/web-0  1  Successfully assigned shop/web-0 to node-1'
      assert.deepEqual(linesOf(table.output), [
        'LAST SEEN  TYPE  REASON  OBJECT  COUNT  MESSAGE',
        `<age>  Normal  Scheduled  ${scheduled}`,
        `<age>  Warning  BackOff  ${backOff}`,
        `<age>  Warning  BackOff  ${backOff}`,
        `<age>  Warning  BackOff  ${backOff}`,
      ])
      assert.deepEqual(linesOf(changes.output), [
        'EVENT  NAMESPACE  LAST SEEN  TYPE  REASON  OBJECT  COUNT  MESSAGE',
        `ADDED  shop  <age>  Normal  Scheduled  ${scheduled}`,
        `ADDED  shop  <age>  Warning  BackOff  ${backOff}`,
        `MODIFIED  shop  <age>  Warning  BackOff  ${backOff}`,
        `DELETED  shop  <age>  Warning  BackOff  ${backOff}`,
      ])
      const ofPod = (line: string): string => line.replace(/pod\/(\S+) {2}\d+/, 'Pod/$1')
      const repeated = ofPod(`<age> (x17 over <age>)  Warning  BackOff  ${backOff}`)
      assert.deepEqual(linesOf(events.output), [
        'LAST SEEN  TYPE  REASON  OBJECT  MESSAGE',
        repeated,
        ofPod(`<age>  Normal  Scheduled  ${scheduled}`),
        repeated,
      ])
      assert.deepEqual(linesOf(warnings.output), [
        'LAST SEEN  TYPE  REASON  OBJECT  MESSAGE',
        repeated,
        repeated,
      ])
    })

    async function play(
      t: TestContext,
      session: KubectlSession,
      { command, output, exitCode }: Exchange,
    ): Promise<void> {
      await t.test(command, async () => {
        const printed = await session.run(command)
        // A refusal names the cluster of the server's URL, on purpose.
        const shown = printed.output.replaceAll(` in the cluster "${cluster}"`, '')
        assert.equal(normalOutput(shown), normalOutput(asPrintedBy(version, output)))
        assert.equal(printed.exitCode, exitCode)
      })
    }
  })
}

function asPrintedBy(version: string, output: string): string {
  const minor = Number(version.split('.')[1])
  return CLIENT_WORDS.filter(({ isIn }) => isIn(minor)).reduce(
    (text, { recorded, printed }) => text.replaceAll(recorded, printed),
    output,
  )
}

function linesOf(output: string): readonly string[] {
  return normalOutput(output).split('\n')
}
