/* The memory that is available: of the machine, and within the limits of control groups. */
#include "core/memory.h"

#include "tests/datasets/root.h"
#include "tests/test.h"

static void write_below(const char *name, const char *text)
{
    scratch_write_text(&scratch, name, text);
}

static void write_machine(void)
{
    write_below("proc/meminfo", "MemTotal: 9000 kB\nMemFree: 1 kB\nMemAvailable:    4000 kB\n");
}

ROOT_TEST(without_groups_it_is_the_machines)
{
    write_machine();
    assert_int_equal(memory_available(scratch.path), 4000 << 10);
    assert_int_equal(memory_available("/nowhere"), 0);
    assert_true(memory_available("") > 0);
}

/* A group without a limit, below one that has used 600 kB of 1000, 150 of them for copies of files. */
ROOT_TEST(groups_around_it_limit_it)
{
    write_machine();
    write_below("proc/self/cgroup", "0::/job/step\n");
    write_below("sys/fs/cgroup/job/step/memory.max", "max\n");
    write_below("sys/fs/cgroup/job/step/memory.current", "204800\n");
    assert_int_equal(memory_available(scratch.path), 4000 << 10);
    write_below("sys/fs/cgroup/job/memory.max", "1024000\n");
    write_below("sys/fs/cgroup/job/memory.current", "614400\n");
    write_below("sys/fs/cgroup/job/memory.stat", "anon 460800\nactive_file 51200\ninactive_file 102400\n");
    assert_int_equal(memory_available(scratch.path), 550 << 10);
    write_below("sys/fs/cgroup/job/memory.current", "2048000\n"); /* over its limit, as for a moment */
    assert_int_equal(memory_available(scratch.path), 1);
}

/* A container is in a group that it does not see, below the one that it sees as the top. */
ROOT_TEST(containers_see_their_group_at_the_top)
{
    write_machine();
    write_below("proc/self/cgroup", "0::/outside/0123\n");
    write_below("sys/fs/cgroup/memory.max", "204800\n");
    write_below("sys/fs/cgroup/memory.current", "102400\n");
    assert_int_equal(memory_available(scratch.path), 100 << 10);
}

ROOT_TEST(the_first_version_has_other_names)
{
    write_machine();
    write_below("proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job\n");
    write_below("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_below("sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
    write_below("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1024000\n");
    write_below("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "614400\n");
    write_below("sys/fs/cgroup/memory/job/memory.stat",
                "inactive_file 1\ntotal_inactive_file 102400\ntotal_active_file 102400\n");
    assert_int_equal(memory_available(scratch.path), 600 << 10);
}
