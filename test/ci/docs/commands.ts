/**
 * Which test runs the commands of which page. Every block of commands (`sh`) in every page must be here:
 * a test runs it, or there is a reason why none can. A key is a page, or one section of it with its anchor.
 */

/** The test file that runs the commands, keyed by page or section. */
export const RUN_BY: Readonly<Record<string, string>> = {
  'README.md': 'test/ci/docs/follow.test.ts',
  'docs/tutorials/first-event.md': 'test/ci/docs/follow.test.ts',
  'docs/tutorials/a-week-of-events.md': 'test/ci/docs/follow.test.ts',
  'docs/tutorials/on-call-night.md': 'test/ci/docs/follow.test.ts',
  'docs/tutorials/last-tuesday.md': 'test/ci/docs/follow.test.ts',
  'docs/how-to/deploy-on-kubernetes.md': 'test/ci/chart/page.test.ts',
  'docs/how-to/clients.md': 'test/nightly/e2e/snippets.test.ts',
  'docs/how-to/questions.md': 'test/ci/e2e/questions.test.ts',
  'docs/how-to/back-up-and-restore.md#rehearse-it': 'test/ci/docs/follow.test.ts',
  'docs/how-to/history.md': 'test/ci/docs/follow.test.ts',
  'docs/how-to/rotate.md#rehearse-it': 'test/ci/docs/follow.test.ts',
  'docs/how-to/write-roles.md#write-a-role-of-your-own-and-try-it': 'test/ci/docs/follow.test.ts',
  'docs/how-to/install.md#try-it-in-three-commands': 'test/nightly/release/bare-debian.test.ts',
  'docs/how-to/install.md#with-the-image': 'test/nightly/release/bare-debian.test.ts',
  'docs/how-to/feed-log-pipelines.md': 'test/ci/docs/typed.test.ts',
  'docs/how-to/retention.md#what-is-kept': 'test/ci/docs/typed.test.ts',
  'docs/reference/summaries.md': 'test/ci/docs/typed.test.ts',
  'docs/runbook/README.md#who-is-flooding-us': 'test/ci/docs/runbook.test.ts',
  'docs/runbook/README.md#while-etcd-is-full': 'test/nightly/e2e/full.test.ts',
}

/** The reason why no test runs the commands, keyed by page or section. */
export const NOT_RUN: Readonly<Record<string, string>> = {
  'charts/tidings/README.md':
    'test/ci/chart renders, checks and starts the chart with the value sets in ci/',
  'docs/how-to/back-up-and-restore.md#restoring-etcd':
    'folders and members are examples; test/nightly/restore restores with the same flags',
  'docs/how-to/install.md#the-archive-under-systemd': 'it adds a user and files to the machine',
  'docs/how-to/install.md#the-image':
    'it needs an etcd of three members and certificates; test/nightly/release starts the image',
  'docs/how-to/mirror.md#set-it-up':
    'needs a cluster with a controller that makes tokens; test/nightly/mirror has its own accounts',
  'docs/how-to/retention.md#changing-the-policy': 'it opens an editor',
  'docs/how-to/upgrade.md#with-systemd-and-haproxy':
    'it needs systemd and a later version; npm test -- upgrade replaces processes behind haproxy',
  'docs/how-to/upgrade.md#with-the-chart':
    'it needs the chart of a later version; test/ci/chart/page.test.ts upgrades with the one that there is',
  'docs/reference/audit.md#audit':
    'part of a command line; test/nightly/e2e/audit.test.ts starts the program with the policy of the page',
  'test/ci/conformance/README.md':
    'npm test -- conformance runs these files; the last command needs a server',
  'CONTRIBUTING.md#from-a-checkout':
    '.ci/run types the same commands on a bare machine; the last one does not end',
}
