#include "whole_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "hytas/onboard.hpp"

namespace hytas::onboard {
namespace {

std::string reason() { return std::generic_category().message(errno); }

bool same_inode(int file, const std::filesystem::path& path) {
    struct stat opened{}, named{};
    return fstat(file, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Opens and locks a part; -1 if another process holds it.
int open_locked(const std::filesystem::path& part, const std::string& kind) {
    for (;;) {
        const int file = open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (file < 0)
            throw Error(Status::output_failed,
                        kind + ": cannot write " + part.string() + ": " + reason());
        if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            close(file);
            return -1;
        }
        // The process that held it may have given it its name, or removed it, meanwhile.
        if (same_inode(file, part)) return file;
        close(file);
    }
}

}  // namespace

void sync_folder_of(const std::filesystem::path& path) {
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0)
        throw Error(Status::output_failed,
                    "cannot open the folder " + folder.string() + ": " + reason());
    const int failed = fsync(opened) == 0 || errno == EINVAL ? 0 : errno;  // some cannot be synced
    close(opened);
    errno = failed;
    if (failed != 0)
        throw Error(Status::output_failed,
                    "cannot sync the folder " + folder.string() + ": " + reason());
}

WholeFile::WholeFile(const std::filesystem::path& path, std::string kind)
    : path_(path), part_(path.string() + ".part"), kind_(std::move(kind)) {
    file_ = open_locked(part_, kind_);
    if (file_ < 0)
        throw Error(Status::output_locked,
                    kind_ + ": " + path_.string() +
                        " is being written by another run; wait for its end, or name another file");
}

WholeFile::~WholeFile() {
    if (!done_) discard();
    close(file_);
}

void WholeFile::discard() {
    std::error_code ignored;
    std::filesystem::remove(part_, ignored);
    done_ = true;
}

std::uint64_t WholeFile::size() const {
    struct stat facts{};
    if (fstat(file_, &facts) != 0)
        throw Error(Status::output_failed,
                    kind_ + ": cannot read " + part_.string() + ": " + reason());
    return static_cast<std::uint64_t>(facts.st_size);
}

std::string WholeFile::read(std::uint64_t place, std::size_t bytes) const {
    std::string content(bytes, '\0');
    std::size_t held = 0;
    while (held < bytes) {
        const ssize_t more =
            pread(file_, &content[held], bytes - held, static_cast<off_t>(place + held));
        if (more < 0 && errno == EINTR) continue;
        if (more <= 0)
            throw Error(Status::output_failed,
                        kind_ + ": cannot read " + part_.string() + ": " + reason());
        held += static_cast<std::size_t>(more);
    }
    return content;
}

void WholeFile::resize(std::uint64_t size) {
    if (ftruncate(file_, static_cast<off_t>(size)) != 0 || lseek(file_, 0, SEEK_END) < 0)
        throw Error(Status::output_failed,
                    kind_ + ": cannot write " + part_.string() + ": " + reason());
}

void WholeFile::write(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(file_, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0)
            throw Error(Status::output_failed,
                        kind_ + ": cannot write " + part_.string() + ": " + reason());
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

void WholeFile::sync() {
    if (fsync(file_) != 0)
        throw Error(Status::output_failed,
                    kind_ + ": cannot write " + part_.string() + ": " + reason());
}

void WholeFile::keep() {
    sync();
    std::filesystem::rename(part_, path_);
    done_ = true;
    sync_folder_of(path_);
}

void WholeFile::leave() {
    sync();
    done_ = true;
    sync_folder_of(path_);
}

}  // namespace hytas::onboard
