#!/usr/bin/perl
# Checks of the source tree that t0001-layers.t runs. usage: structure.pl layers|circles|names|calls
# Prints what is wrong, a line each, and exits 1; silent and 0 when all is well.
use strict;
use warnings;
use File::Find;
use File::Basename;

my @files;
find(sub { push @files, $File::Find::name if /\.[ch]$/ && !/\.pb-c\./ }, 'src', 'plugins', 'include');
my (@bad, %includes);

sub slurp { my ($f) = @_; open my $h, '<', $f or die "$f: $!"; local $/; return scalar <$h>; }

# file => [[line, included path relative to the tree], ...]
for my $f (@files) {
    my $n = 0;
    for my $line (split /\n/, slurp($f)) {
        $n++;
        next unless $line =~ /^\s*#\s*include\s*["<]([\w.\/-]+)[">]/;
        my $i = $1;
        my $path = $i =~ m{^crunwlm/} ? "include/$i" : -e "src/$i" ? "src/$i" : -e dirname($f) . "/$i" ? dirname($f) . "/$i" : undef;
        push @{ $includes{$f} }, [ $n, $path, $i ] if defined $path;
    }
}

sub folder { my ($p) = @_; return $1 if $p =~ m{^src/(\w+)/}; return (split m{/}, $p)[0]; }

sub layers {
    my %may;
    for (split /\n/, slurp('src/LAYERS')) {
        next if /^\s*#/ || !/^(\w+)\s*:\s*(.*)$/;
        $may{$1} = { map { $_ => 1 } 'include', split ' ', $2 };
    }
    for my $f (sort keys %includes) {
        my $from = folder($f);
        push @bad, "$f: folder '$from' is not in src/LAYERS" unless $may{$from};
        for my $i (@{ $includes{$f} }) {
            my $to = folder($i->[1]);
            next if $to eq $from || $may{$from}{$to};
            push @bad, "$f:$i->[0]: $from may not include $to ($i->[2])";
        }
    }
}

# Circles of headers: depth-first search, each found once.
sub circles {
    my (%state, $visit, @path);
    $visit = sub {
        my ($f) = @_;
        return if ($state{$f} // 0) == 2;
        if (($state{$f} // 0) == 1) { push @bad, "circle: " . join(' -> ', @path, $f); return; }
        $state{$f} = 1;
        push @path, $f;
        $visit->($_->[1]) for @{ $includes{$f} // [] };
        pop @path;
        $state{$f} = 2;
    };
    $visit->($_) for sort @files;
    # circles of folders
    my %edge;
    for my $f (@files) { $edge{ folder($f) }{ folder($_->[1]) } = 1 for @{ $includes{$f} // [] }; }
    delete $edge{$_}{$_} for keys %edge;
    my %seen;
    my $walk;
    $walk = sub {
        my ($d, @p) = @_;
        if (grep { $_ eq $d } @p) { push @bad, "circle of folders: " . join(' -> ', @p, $d); return; }
        return if $seen{$d};
        $walk->($_, @p, $d) for sort keys %{ $edge{$d} // {} };
        $seen{$d} = 1;
    };
    $walk->($_) for sort keys %edge;
}

sub names {
    my %by;
    push @{ $by{ basename($_) } }, $_ for @files;
    for (sort keys %by) { push @bad, "one name, several files: @{ $by{$_} }" if @{ $by{$_} } > 1; }
    for (@files) { push @bad, "$_: no file or folder is called util, common, misc or helper" if m{(^|/|_)(utils?|common|misc|helpers?)(/|_|\.)}; }
}

# What has a safer way here (STYLE.md), with the way.
my %banned = (
    strcpy => 'cw_buf or snprintf', strcat => 'cw_buf', sprintf => 'snprintf', gets => 'cw_file_read',
    strtok => 'strtok_r', system => 'posix_spawn', popen => 'posix_spawn', mktemp => 'mkstemp',
    tmpnam => 'mkstemp', usleep => 'a timer with an event', atoi => 'a checked parse', atol => 'a checked parse',
    nn_term => 'nn_close each socket', alloca => 'an arena',
);
sub calls {
    for my $f (@files) {
        my $n = 0;
        my $text = slurp($f);
        $text =~ s{/\*.*?\*/}{ (my $c = $&) =~ s/[^\n]//g; $c }gse; # comments may name them
        for my $line (split /\n/, $text) {
            $n++;
            next unless $line =~ /\(/;
            $line =~ s/"(\\.|[^"\\])*"//g;
            while ($line =~ /(?<![\w.>])(\w+)\s*\(/g) {
                push @bad, "$f:$n: $1(): use $banned{$1}" if $banned{$1};
            }
        }
    }
}

my %checks = (layers => \&layers, circles => \&circles, names => \&names, calls => \&calls);
my $what = $checks{ $ARGV[0] // '' } or die "usage: structure.pl layers|circles|names|calls\n";
$what->();
print "$_\n" for @bad;
exit(@bad ? 1 : 0);
