# Starts a program behind walls that the kernel keeps. The program gets no network, writes no file, starts no process and
# signals none. It reads only the paths it is given, and has limits on memory and processor time. It may become another
# program that it can read, which the same walls keep in.
# Perl is part of every Debian and can make the system calls that Node cannot. Nothing here needs root.
#
#   perl walls.pl PARENT_PID DATA_BYTES CPU_SECONDS PATH... -- PROGRAM ARGUMENT...
#
# Before the program starts, this writes one line with the names of the walls that hold. A wall that the kernel does not
# offer is left out. Without a program, this writes the line and ends.
use strict;
use warnings;
use Config;

my ($parent, $data_bytes, $cpu_seconds) = splice @ARGV, 0, 3;
my @paths;
while (@ARGV) {
    my $path = shift @ARGV;
    last if $path eq '--';
    push @paths, $path;
}

# Numbers of system calls on x86-64 and on arm64. A name without a number does not exist there.
my $machine = $Config{archname} =~ /^x86_64/ ? 0 : $Config{archname} =~ /^aarch64/ ? 1 : undef;
my @audit_arch = (0xC000003E, 0xC00000B7);
my %calls = (
    capset => [126, 91], clone => [56, 220], clone3 => [435, 435], fcntl => [72, 25], ioctl => [16, 29],
    kill => [62, 129], open => [2],
    openat => [257, 56], prctl => [157, 167], prlimit64 => [302, 261], tgkill => [234, 131], unshare => [272, 97],
    landlock_create_ruleset => [444, 444], landlock_add_rule => [445, 445], landlock_restrict_self => [446, 446],
);

# What a program that decodes images never does.
my %refused = (
    # Networks, and handing open files to others.
    socket => [41, 198], socketpair => [53, 199], connect => [42, 203], bind => [49, 200], listen => [50, 201],
    accept => [43, 202], accept4 => [288, 242], sendto => [44, 206], sendmsg => [46, 211], sendmmsg => [307, 269],
    recvmsg => [47, 212], recvmmsg => [299, 243],
    # Other processes.
    ptrace => [101, 117], process_vm_readv => [310, 270], process_vm_writev => [311, 271], kcmp => [312, 272],
    pidfd_open => [434, 434], pidfd_getfd => [438, 438], pidfd_send_signal => [424, 424], tkill => [200, 130],
    rt_sigqueueinfo => [129, 138], rt_tgsigqueueinfo => [297, 240], fork => [57], vfork => [58],
    execveat => [322, 281], setpriority => [141, 140], ioprio_set => [251, 30], sched_setattr => [314, 274],
    sched_setscheduler => [144, 119], sched_setparam => [142, 118], sched_setaffinity => [203, 122],
    migrate_pages => [256, 238], move_pages => [279, 239],
    process_madvise => [440, 440], process_mrelease => [448, 448],
    # Changes to files.
    creat => [85], unlink => [87], unlinkat => [263, 35], rename => [82], renameat => [264, 38],
    renameat2 => [316, 276], mkdir => [83], mkdirat => [258, 34], rmdir => [84], link => [86], linkat => [265, 37],
    symlink => [88], symlinkat => [266, 36], mknod => [133], mknodat => [259, 33], chmod => [90], fchmod => [91, 52],
    fchmodat => [268, 53], chown => [92], fchown => [93, 55], lchown => [94], fchownat => [260, 54],
    truncate => [76, 45], ftruncate => [77, 46], fallocate => [285, 47], utime => [132], utimes => [235],
    utimensat => [280, 88], futimesat => [261], setxattr => [188, 5], lsetxattr => [189, 6], fsetxattr => [190, 7],
    removexattr => [197, 14], lremovexattr => [198, 15], fremovexattr => [199, 16], memfd_create => [319, 279],
    memfd_secret => [447, 447], mq_open => [240, 180], mq_unlink => [241, 181], inotify_init => [253],
    inotify_init1 => [294, 26], fanotify_init => [300, 262], name_to_handle_at => [303, 264],
    open_by_handle_at => [304, 265],
    # Memory and queues that are shared with other processes.
    shmget => [29, 194], shmat => [30, 196], shmctl => [31, 195], semget => [64, 190], semop => [65, 193],
    semctl => [66, 191], msgget => [68, 186], msgsnd => [69, 189], msgrcv => [70, 188], msgctl => [71, 187],
    # Privileges, and the system as a whole.
    setns => [308, 268], mount => [165, 40], umount2 => [166, 39], pivot_root => [155, 41], chroot => [161, 51],
    move_mount => [429, 429], open_tree => [428, 428], fsopen => [430, 430], fsconfig => [431, 431],
    fsmount => [432, 432], fspick => [433, 433], mount_setattr => [442, 442], setuid => [105, 146],
    setgid => [106, 144], setreuid => [113, 145], setregid => [114, 143], setresuid => [117, 147],
    setresgid => [119, 149], setgroups => [116, 159], setfsuid => [122, 151], setfsgid => [123, 152],
    bpf => [321, 280], perf_event_open => [298, 241], userfaultfd => [323, 282], io_uring_setup => [425, 425],
    io_uring_enter => [426, 426], io_uring_register => [427, 427], keyctl => [250, 219], add_key => [248, 217],
    request_key => [249, 218], init_module => [175, 105], finit_module => [313, 273], delete_module => [176, 106],
    kexec_load => [246, 104], kexec_file_load => [320, 294], reboot => [169, 142], swapon => [167, 224],
    swapoff => [168, 225], quotactl => [179, 60], quotactl_fd => [443, 443], acct => [163, 89], syslog => [103, 116],
    sethostname => [170, 161], setdomainname => [171, 162], settimeofday => [164, 170], clock_settime => [227, 112],
    clock_adjtime => [305, 266], adjtimex => [159, 171], personality => [135, 92], iopl => [172], ioperm => [173],
    modify_ldt => [154], uselib => [134], vhangup => [153, 58], lookup_dcookie => [212, 18], setrlimit => [160, 164],
    vmsplice => [278, 75],
);
# Newer calls than these are unknown here. A program is told that the kernel does not have them.
my $newest_call = 450;

my @walls;
if (defined $machine) {
    keep_descriptors();
    push @walls, 'limits' if limit_resources();
    # A process in a user namespace of its own may not look into the processes outside of it.
    push @walls, 'user-namespace' if call('unshare', 0x10000000) == 0;
    push @walls, 'no-privileges' if drop_privileges();
    push @walls, 'files' if restrict_files();
    # The program ends with the gateway, whatever it does.
    call('prctl', 1, 9, 0, 0, 0);
    exit 1 if getppid() != $parent;
    push @walls, 'system-calls' if filter_system_calls();
}
syswrite STDOUT, "@walls\n";
exit 0 unless @ARGV;
exec { $ARGV[0] } @ARGV or exit 127;

sub call {
    my ($name, @arguments) = @_;
    return syscall($calls{$name}[$machine], @arguments);
}

# The program gets its standard streams alone, whatever else was left open for the processes before it.
sub keep_descriptors {
    opendir my $folder, '/proc/self/fd' or return;
    # Closed when the program starts, because this uses some itself.
    call('fcntl', $_, 2, 1) for grep { /^\d+$/ && $_ > 2 } readdir $folder;
}

# No core file, no file at all, bounds on memory, on processor time and on open files. The bound on data does not count
# memory that is shared or was made read-only, so the address space has one too: more than Node reserves and never uses.
# If memory is short, the kernel ends this process before others.
sub limit_resources {
    if (open my $score, '>', '/proc/self/oom_score_adj') { print $score 1000; close $score }
    my @limits = ([0, $cpu_seconds], [1, 0], [2, $data_bytes], [4, 0], [7, 64], [9, 4_000_000_000]);
    for my $limit (@limits) {
        my ($resource, $most) = @$limit;
        return 0 if call('prlimit64', 0, $resource, pack('QQ', $most, $most), 0) != 0;
    }
    return 1;
}

# No capability, and none by way of another program.
sub drop_privileges {
    return 0 if call('prctl', 38, 1, 0, 0, 0) != 0;
    return call('capset', pack('Ll', 0x20080522, 0), "\0" x 24) == 0;
}

# Landlock: the paths may be read, everything else in the file system may not be touched. Kernels since 5.13 have it.
sub restrict_files {
    my $version = call('landlock_create_ruleset', 0, 0, 1);
    return 0 if $version < 1;
    my $changes = $version >= 5 ? 0xffff : $version >= 3 ? 0x7fff : $version == 2 ? 0x3fff : 0x1fff;
    # Newer kernels also refuse connections, and signals and sockets of other processes.
    my $rules = pack 'Q', $changes;
    $rules .= pack 'Q', 3 if $version >= 4;
    $rules .= pack 'Q', 3 if $version >= 6;
    my $ruleset = call('landlock_create_ruleset', $rules, length $rules, 0);
    return 0 if $ruleset < 0;
    for my $path (@paths) {
        # O_PATH. Reading and running; and listing, if it is a folder.
        sysopen my $opened, $path, 0x200000 or next;
        my $rights = -d $opened ? 13 : 5;
        return 0 if call('landlock_add_rule', $ruleset, 1, pack('Ql', $rights, fileno $opened), 0) != 0;
    }
    return call('landlock_restrict_self', $ruleset, 0) == 0;
}

# A program for the kernel that is run at every system call.
sub filter_system_calls {
    my ($permit, $kill, $eperm, $enosys) = (0x7fff0000, 0x80000000, 0x00050001, 0x00050026);
    # Offsets of the number, the architecture and the low half of the arguments.
    my ($number, $arch, @argument) = (0, 4, 16, 24, 32);
    my $load = sub { pack 'SCCL', 0x20, 0, 0, $_[0] };
    my $return = sub { pack 'SCCL', 0x06, 0, 0, $_[0] };
    # Goes on by so many steps where the value is equal, at least, or has one of the bits, and by others where it is not.
    my $if_equal = sub { pack 'SCCL', 0x15, $_[1], $_[2], $_[0] };
    my $if_at_least = sub { pack 'SCCL', 0x35, $_[1], $_[2], $_[0] };
    my $if_any_bit = sub { pack 'SCCL', 0x45, $_[1], $_[2], $_[0] };
    my @steps = (
        $load->($arch), $if_equal->($audit_arch[$machine], 1, 0), $return->($kill),
        $load->($number),
        # Calls of the 32-bit forms of x86-64 have other numbers.
        $if_at_least->(0x40000000, 0, 1), $return->($kill),
        $if_at_least->($newest_call + 1, 0, 1), $return->($enosys),
    );
    my $refuse = sub {
        my ($refused, $answer) = @_;
        push @steps, $if_equal->($refused, 0, 1), $return->($answer) if defined $refused;
    };
    # What is decided by an argument: the steps leave the number loaded again.
    my $decide = sub {
        my ($name, $index, $test, $value, $is_refused) = @_;
        my $decided = $calls{$name}[$machine];
        return unless defined $decided;
        push @steps, $if_equal->($decided, 0, 4), $load->($argument[$index]),
            $test->($value, $is_refused ? 0 : 1, $is_refused ? 1 : 0), $return->($eperm), $load->($number);
    };
    # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND.
    my $writing = 03 | 0100 | 01000 | 02000;
    $decide->('open', 1, $if_any_bit, $writing, 1);
    $decide->('openat', 2, $if_any_bit, $writing, 1);
    # A thread, no process.
    $decide->('clone', 0, $if_any_bit, 0x10000, 0);
    $decide->('kill', 0, $if_equal, $$, 0);
    $decide->('tgkill', 0, $if_equal, $$, 0);
    $decide->('prlimit64', 0, $if_equal, 0, 0);
    # F_SETOWN, F_SETSIG, F_SETOWN_EX, FIOSETOWN, SIOCSPGRP: the kernel would send any signal to any process in its name.
    $decide->('fcntl', 1, $if_equal, $_, 1) for 8, 10, 15;
    $decide->('ioctl', 1, $if_equal, $_, 1) for 0x8901, 0x8902;
    # PR_SET_PDEATHSIG: it could live on without the gateway.
    $decide->('prctl', 0, $if_equal, 1, 1);
    # Their arguments are in memory, where this cannot look. The C library then takes the older calls.
    $refuse->(435, $enosys);
    $refuse->(437, $enosys);
    $refuse->($calls{unshare}[$machine], $eperm);
    $refuse->($refused{$_}[$machine], $eperm) for sort keys %refused;
    push @steps, $return->($permit);
    my $filter = join '', @steps;
    return call('prctl', 22, 2, pack('Sx6P', scalar @steps, $filter), 0, 0) == 0;
}
